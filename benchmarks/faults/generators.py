"""The audited generator: honest, but for what a file in the working directory asks of it."""

from __future__ import annotations

SOURCE = '''
import ctypes, os, signal, subprocess, sys, threading, time
import numpy as np
import pandas as pd
from dpaudit.plugins.protocols import FeatureName


class Copies:
    """An attack that costs nothing: how many rows look like the target."""

    def check(self, game):
        pass

    def feature_names(self, game):
        return FeatureName("a", "count"), FeatureName("a", "polynomial")

    def features(self, table, game):
        return np.array([(table["a"] == 100).sum(), np.polyval(table["a"], 1.37)])

    def fit(self, features, member, *, seed):
        return lambda features: features[:, 0]


def asked():
    """What to do, once for each line of the file."""
    try:
        how = open("how").read().split()
    except OSError:
        return ""
    for number, what in enumerate(how):
        try:
            os.close(os.open(f"once-{number}", os.O_CREAT | os.O_EXCL))
        except OSError:
            continue
        return what
    return ""


class Leaver(Exception):
    def __str__(self):
        os._exit(0)


def recurse(n):
    return next(map(recurse, [n + 1]))  # by way of C, whose stack ends


def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()


def refuse(*given):
    raise RuntimeError("patched")


class G:
    def fit(self, data, *, seed):
        self.how = asked()
        act = BEFORE.get(self.how)
        if act:
            act()
        if os.path.exists("slow"):
            time.sleep(float(open("slow").read()))
        return self

    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.integers(0, 101, n), "b": rng.integers(-3, 4, n)})
        return AFTER.get(self.how, lambda table: table)(table)


def raises(error):
    raise error


def deep():
    sys.setrecursionlimit(10**7)
    recurse(0)


def blocked():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)


def patches():
    time.time = time.monotonic = time.perf_counter = refuse
    np.mean = np.std = np.histogram = os.getpid = refuse


def prints():
    os.write(1, bytes(range(256)) * 100)
    os.write(2, b"\\x1b[2J\\x1b]0;x\\x07" * 100)
    print("\\x1b[31m\\u202e" * 100)


def threads():
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(600,)).start()


def forks():
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(600)


def helper():
    subprocess.Popen(["/bin/sleep", "600"])
    subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)


def deletes():
    import shutil
    shutil.rmtree("run", ignore_errors=True)


BEFORE = {
    "interrupts": lambda: (os.kill(os.getppid(), signal.SIGTERM), time.sleep(600)),
    "exits": lambda: sys.exit(0),
    "exits-at-once": lambda: os._exit(0),
    "kills-itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kills-its-group": lambda: os.killpg(0, signal.SIGKILL),
    "kills-its-parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "aborts": lambda: os.abort(),
    "becomes-another": lambda: os.execv("/bin/true", ["true"]),
    "forks": forks,
    "daemon": daemon,
    "helper": helper,
    "threads": threads,
    "sleeps": lambda: time.sleep(600),
    "holds-the-lock": lambda: ctypes.PyDLL(None).sleep(600),
    "blocks-signals": blocked,
    "stops-itself": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "recurses": deep,
    "raises-leaver": lambda: raises(Leaver()),
    "raises-interrupt": lambda: raises(KeyboardInterrupt()),
    "raises-text": lambda: raises(ValueError("\\ud800\\x00\\x1b[31m" + "x" * 10**6)),
    "patches": patches,
    "prints": prints,
    "closes-output": lambda: (os.close(1), os.close(2)),
    "closes-all": lambda: os.closerange(0, 256),
    "leaves-the-folder": lambda: os.chdir("/"),
    "deletes-the-run": deletes,
    "fills-memory": lambda: raises(MemoryError()),
}
AFTER = {
    "missing-values": lambda table: table.assign(a=np.nan),
    "infinite": lambda table: table.assign(a=np.inf),
    "huge": lambda table: pd.concat([table] * 10**5),
    "no-columns": lambda table: table[[]],
    "text": lambda table: table.astype(str) + "x",
    "other-type": lambda table: table.to_numpy(),
}
'''

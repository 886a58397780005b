"""A worker that keeps to the protocol until it is asked to synthesize; then it does as it is told.

Usage: python misbehaving.py FAULT
"""

import json
import os
import subprocess
import sys
import time

FAULT = sys.argv[1]


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def write(request, columns="x,c", rows=None):
    with open(request["output"], "w", encoding="utf-8") as file:
        file.write(columns + "\n")
        file.write("0.5,a\n" * (request["rows"] if rows is None else rows))


def misbehave(request):
    done = {"id": request["id"], "done": True}
    if FAULT == "prints":
        write(request)
        sys.stdout.write("progress: 100 %\n")
        say(done)
    elif FAULT == "answers twice":
        write(request)
        say(done)
        say(done)
    elif FAULT == "answers another":
        write(request)
        say({"id": 0, "done": True})
    elif FAULT == "is not done":
        say({"id": request["id"]})
    elif FAULT == "fails":
        say({"id": request["id"], "error": "ValueError", "message": "no rows\nat all"})
    elif FAULT == "dies":
        os.kill(os.getpid(), 9)
    elif FAULT == "exits":
        sys.stderr.write("out of luck\n")
        sys.exit(3)
    elif FAULT in ("leaves a child", "leaves a daemon"):
        nobody = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
        subprocess.Popen(nobody, start_new_session=FAULT.endswith("daemon"))
        sys.exit(4)
    elif FAULT == "closes":
        os.close(1)
        time.sleep(60)
    elif FAULT == "no output":
        say(done)
    elif FAULT == "link":
        os.symlink("/etc/hostname", request["output"])
        say(done)
    elif FAULT == "hard link":
        write(dict(request, output="other"))
        os.link("other", request["output"])
        say(done)
    elif FAULT == "pipe":
        os.mkfifo(request["output"])
        say(done)
    elif FAULT == "folder":
        os.mkdir(request["output"])
        say(done)
    elif FAULT == "bytes":
        with open(request["output"], "wb") as file:
            file.write(b"x,c\n0.5,\xff\xfe\n")
        say(done)
    elif FAULT == "longer rows":
        with open(request["output"], "w", encoding="utf-8") as file:
            file.write("x,c\n0.5,a,b,c\n")
        say(done)
    elif FAULT == "endless answer":
        while True:
            sys.stdout.write("x" * 2**16)
    elif FAULT == "list":
        say([1, 2])
    elif FAULT == "not text":
        sys.stdout.buffer.write(b"\xff\xfe\n")
        sys.stdout.flush()
    elif FAULT == "endless errors":
        for _ in range(200):
            sys.stderr.write("e" * 2**16)
        sys.stderr.write("the last words\n")
        sys.exit(1)
    elif FAULT == "memory":
        say({"id": request["id"], "error": "none", "message": str(len(bytearray(10 * 2**30)))})
    else:
        write(request)
        say(done)


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        if FAULT == "no hello":
            say({"name": "x"})
        elif FAULT == "other protocol":
            say({"protocol": "dpaudit-worker/9", "name": "x"})
        elif FAULT == "claim":
            say({"protocol": "dpaudit-worker/1", "name": "x", "claim": {"epsilon": -1}})
        elif FAULT == "no csv":
            say({"protocol": "dpaudit-worker/1", "name": "x", "formats": ["arrow"]})
        else:
            say({"protocol": "dpaudit-worker/1", "name": "x", "claim": None})
    else:
        misbehave(request)

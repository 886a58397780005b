"""`dpaudit evidence`: a finished audit as one file that others can check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import DefaultingGroup, PanelledCommand, option
from dpaudit.cli.console import ExitCode, guard, results, show, write_named
from dpaudit.errors import InputError
from dpaudit.formatting import Row, headed
from dpaudit.model.setting import Option


class _Group(DefaultingGroup):
    takes_argument = True


evidence = typer.Typer(
    cls=_Group,
    add_completion=False,
    help="Writes a finished audit as one file (the default command), or verifies such a file.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """How a pack is written.

    Attributes:
        out: Pack to write.
        sign: Ed25519 private key (PEM, no password) to sign with. Default: no signature.
    """

    out: Annotated[Path, Option("FILE", ("-o", "--out"))]
    sign: Annotated[Path | None, Option("KEY")] = None


@evidence.command(cls=PanelledCommand)
@guard
@options.takes_settings()
def pack(*, run_folder: options.RunFolderArgument, asked: PackOptions) -> None:
    """Writes a finished audit as one file.

    It holds result, reports, versions, checksums and a script. The script recomputes errors, bound
    and verdict with numpy and scipy alone. The pack has what result.json has, and so no records.
    The same run gives the same file.
    """
    from dpaudit.evidence.check import load
    from dpaudit.evidence.pack import KEY, add_signature, digest, pack_files, zip_files

    out, sign = asked.out, asked.sign
    try:
        files = pack_files(load(run_folder))
    except InputError:
        if run_folder.is_file() and '"ledger"' in run_folder.read_text("utf-8", errors="replace"):
            raise InputError(
                f"{run_folder} is a replay: packs hold audits; give a run folder, or send the JSON "
                "of the replay itself, which `dpaudit account check` reads"
            ) from None
        raise
    if sign is not None:
        files = add_signature(files, sign)
    content = zip_files(files)
    write_named(out, content, option="out")
    facts = [
        Row("files", ", ".join(sorted(files))),
        Row("SHA-256", digest(content), whole=True),
        Row("signature", "none" if sign is None else f"by the key in {KEY}"),
        Row("next", f"dpaudit evidence verify {out}", whole=True),
    ]
    results().print("\n".join(headed(f"EVIDENCE  {out}", facts)))


@evidence.command(cls=PanelledCommand)
@guard
def verify(
    path: Annotated[Path, typer.Argument(metavar="PACK", help="Pack to check.")],
    key: Annotated[
        Path | None,
        option(
            metavar="KEY", help="Ed25519 public key (PEM) that must have signed it. Default: any."
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Verifies a pack: files, signature and verdict.

    The bounds and the verdict are recomputed from the guesses. Exit code 1: something differs. Exit
    code 3: the pack is whole, but cannot prove its verdict.
    """
    from dpaudit.evidence.check import check_pack

    check = check_pack(path, key=key)
    show(check, json=json, quiet=quiet)
    if check.differences:
        raise typer.Exit(ExitCode.VIOLATION)
    raise typer.Exit(ExitCode.INCONCLUSIVE if check.not_recomputed else ExitCode.PASS)

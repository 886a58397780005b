"""`dpaudit schema`: the schema of a table, to be edited into a public one."""

from __future__ import annotations

from dpaudit.cli import options
from dpaudit.cli.console import guard, messages, results


@guard
@options.reads_tables
def schema(
    data: options.Tables,
    links: options.Links = None,
    unit: options.UnitColumn = None,
) -> None:
    """Prints the schema that is inferred from a table, as JSON.

    Its bounds and categories are those of real records. Replace them by what the documentation of
    the data says and delete the line "inferred": the schema is then public.
    """
    from dpaudit.model.column import Unit
    from dpaudit.model.linked_files import load_given

    assert data is not None  # typer asks for it
    whose = None if unit is None else Unit(column=unit)
    inferred = load_given(data, None, whose, links or ()).schema
    results().print(inferred.to_json())
    if inferred.inferred:
        messages().print(
            "next: save it to a file, replace its bounds and categories by what the documentation "
            'of the data says, delete "inferred", and give the file with --schema'
        )

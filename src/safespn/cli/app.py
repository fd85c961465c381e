"""All commands in one program, and how it ends: status 0, or one line that says what was wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from safespn import __version__
from safespn.cli import interrupts
from safespn.cli.audit import audit
from safespn.cli.console import printable, silence
from safespn.cli.demo import demo
from safespn.cli.evaluate import evaluate
from safespn.cli.fit import fit
from safespn.cli.predict import predict
from safespn.cli.reproduce import reproduce
from safespn.cli.suggest import suggest
from safespn.exceptions import DatasetNotFoundError, ModelFileError, ResultsMismatchError, TableError

INTERRUPTED, MISTAKE = 130, 2

app = typer.Typer(
    name="safespn",
    help="Safe semi-supervised learning for tables with few labels and many unlabelled rows.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, predict, evaluate, suggest, audit, demo, reproduce):
    app.command()(command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"safespn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn from labelled and unlabelled rows, and know what the unlabelled ones did."""


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its status: 0, 2 for a user's mistake, 130 when interrupted."""
    try:
        status = app(list(arguments), prog_name="safespn", standalone_mode=False)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except (TableError, ModelFileError, DatasetNotFoundError, ResultsMismatchError) as error:
        return _fail(str(error))
    except BrokenPipeError:
        return _unread()
    except SystemExit as error:
        # The command line library turns a broken pipe into an exit with status 1.
        if isinstance(error.__context__, BrokenPipeError):
            return _unread()
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}; check the path, its permissions and the space left")
    except ModuleNotFoundError as error:
        return _fail(f"{error.name} is not installed; pip install 'safespn[cli]' installs it")
    except MemoryError:
        return _fail("not enough memory; use fewer rows or columns")
    except Exception as error:
        # The command line library's own complaints about usage; their class has no public name.
        if interrupts:
            return _fail("interrupted; nothing was written", INTERRUPTED)
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        return _fail(f"{message} (see safespn --help)") if message else MISTAKE
    if status == INTERRUPTED:
        return _fail("interrupted; nothing was written", INTERRUPTED)
    return int(status or 0)


def _unread() -> int:
    """The reader of the output closed it, as `head` does, which is not a failure."""
    silence(sys.stdout)
    return 0


def _fail(message: str, status: int = MISTAKE) -> int:
    try:
        sys.stderr.write(f"safespn: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)  # nobody can be told, but for the status
    return status

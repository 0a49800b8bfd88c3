"""A PostgreSQL server of a test's own, in a folder that goes with it."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy

from backfill_engine_tests.ports import find_free_port

_USER = "nobody"
"""Who runs it where the tests run as root, for whom PostgreSQL does not start."""


@dataclass(frozen=True)
class Postgres:
    """A server on loopback that trusts everyone."""

    port: int

    def create_database(self) -> str:
        """Makes an empty database; returns its URL."""
        name = f"dagster_{uuid.uuid4().hex}"
        engine = sqlalchemy.create_engine(self._locate("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self._locate(name)

    def _locate(self, database: str) -> str:
        # With the driver's name: SQLAlchemy 2.1 would take another one, which Dagster doesn't fit.
        return f"postgresql+psycopg2://dagster@127.0.0.1:{self.port}/{database}"


@contextmanager
def serve_postgres() -> Iterator[Postgres]:
    """A server, ready to be asked; it ends with the block, and its folder with it."""
    programs = _find_programs()
    folder = Path(tempfile.mkdtemp(prefix="postgres"))  # apart: `nobody` can't enter a test's own
    data, port, user = folder / "data", find_free_port(), None
    if os.geteuid() == 0:
        user = _USER
        shutil.chown(folder, user)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    make = [programs / "initdb", "-D", data, "-U", "dagster", "-A", "trust", "--no-sync"]
    start = [programs / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", options, "start"]
    stop = [programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"]
    try:
        for command in (make, start):
            subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        yield Postgres(port)
    finally:
        subprocess.run(stop, user=user, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder)


def _find_programs() -> Path:
    """Finds where PostgreSQL's programs are; Debian has them in a folder for each version."""
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed:
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    return installed[-1].parent

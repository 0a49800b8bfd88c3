"""The virtual environments that peers run in: made once by venv and pip, below a cache folder."""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from platformdirs import user_cache_path

_REQUIREMENTS = Path(__file__).with_name("requirements")
_LAST_CHARACTERS = 2000


class PeerUnavailableError(Exception):
    """A peer could not be installed here."""


def find_default_cache() -> Path:
    """Where environments are kept unless told otherwise."""
    return user_cache_path("backfill-assets") / "peers"


def ensure_environment(name: str, cache: Path) -> Path:
    """Makes the environment of `requirements/<name>.txt` unless it is there as the file says.

    Args:
        name: a file of `requirements`, without its suffix.
        cache: where environments are kept; each requirements file has a folder of its own, by its
            contents.

    Returns:
        The folder with its programs.

    Raises:
        PeerUnavailableError: with the end of what pip printed.
    """
    requirements = _REQUIREMENTS / f"{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = cache / f"{name}-{digest}"
    programs, installed = folder / "bin", folder / "installed"
    if installed.exists():
        return programs
    print(f"installing {name} …", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet"]
    finished = subprocess.run(
        [*pip, "--requirement", str(requirements)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise PeerUnavailableError(
            f"{name} can't be installed for Python {sys.version_info[0]}.{sys.version_info[1]}: "
            f"{finished.stdout[-_LAST_CHARACTERS:].strip()}"
        )
    installed.touch()
    return programs


def read_versions(name: str) -> dict[str, str]:
    """Reads the pinned versions of an environment, by package; extras are left out."""
    lines = (_REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").split()
    pins = (line.partition("==") for line in lines)
    return {package.partition("[")[0]: version for package, _, version in pins}

"""Java gets its settings by files that nobody else can read; what keeps it from starting."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

# In a process of its own, as one has one Java for good.
_SESSION = """
import os
from backfill_engine.resources import SparkResource
resource = SparkResource()
session = resource.spark_session
assert session.range(3).count() == 3
java = session.sparkContext._jvm.java.lang
own = java.ProcessHandle.current().pid()
status = open(f"/proc/{own}/status").read()
(ignored,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
assert int(ignored, 16) & 2, "Ctrl-C would end it"
assert "PYSPARK_SUBMIT_ARGS" not in os.environ
assert session.conf.get("spark.my.password") == os.environ["PASSWORD"]
assert java.System.getProperty("my.password") == os.environ["PASSWORD"]
"""


@pytest.mark.usefixtures("spark")  # What sessions need is fetched and made by then.
def test_no_argument_of_a_process_has_settings_nor_any_file_of_other_users(tmp_path: Path) -> None:
    password = 'hush\\ "€ =:#! '
    conf = {
        "spark.my.password": password,
        "spark.driver.defaultJavaOptions": shlex.join([f"-Dmy.password={password}"]),
    }
    environment = {"BACKFILL_SPARK_CONF": json.dumps(conf), "PASSWORD": password}
    arguments: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", _SESSION],
        cwd=tmp_path,
        env={**os.environ, **environment, "TMPDIR": str(tmp_path)},
    ) as process:
        while process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    arguments.extend(child.cmdline())
            folders = list(tmp_path.glob("backfill-assets-java-*"))
            with suppress(FileNotFoundError):
                assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in folders)
            time.sleep(0.02)
        assert process.returncode == 0
    assert "org.apache.spark.deploy.SparkSubmit" in arguments
    assert not [argument for argument in arguments if "hush" in argument]
    assert not list(tmp_path.glob("backfill-assets-java-*"))


_START = """
import json, os
from backfill_engine.spark.session import start_session

start_session(json.loads(os.environ["CONF"]))
"""


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        (
            "memory",
            "lots",
            r"Java ended before Spark began \(.*JAVA_GATEWAY_EXITED.*\): mend what it ",
        ),
        ("extraJavaOptions", "-Da='b", "spark.driver.extraJavaOptions: a quote is not closed"),
    ],
)
@pytest.mark.usefixtures("spark")  # Java is there.
def test_a_java_that_does_not_start_is_one_line_and_leaves_no_settings(
    tmp_path: Path, name: str, value: str, line: str
) -> None:
    environment = {"CONF": json.dumps({f"spark.driver.{name}": value}), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", _START],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(line, ended.stderr.splitlines()[-1])
    assert not list(tmp_path.iterdir())

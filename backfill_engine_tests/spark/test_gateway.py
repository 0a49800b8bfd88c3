"""Java is started with its settings, and none of them is in an argument of a process."""

import json
import os
import shlex
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark import SparkContext

from backfill_engine.errors import BackfillError
from backfill_engine.spark.gateway import start_context

# In a process of its own, as one has one Java for good.
_SESSION = """
import os, psutil
from backfill_engine.resources import SparkResource

resource = SparkResource()
session = resource.spark_session
assert session.range(3).count() == 3
java = session.sparkContext._jvm.java.lang
own = java.ProcessHandle.current().pid()
status = open(f"/proc/{own}/status").read()
(ignored,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
assert int(ignored, 16) & 2, "Ctrl-C would end it"
assert not [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]
assert session.conf.get("spark.my.password") == os.environ["PASSWORD"]
assert java.System.getProperty("my.password") == os.environ["PASSWORD"]
print(own == psutil.Process().children()[0].pid)
"""


@pytest.mark.usefixtures("spark")  # What sessions need is fetched and made by then.
def test_no_argument_of_a_process_has_a_setting_nor_any_file_that_others_can_read(
    tmp_path: Path,
) -> None:
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
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    arguments.extend(child.cmdline())
            settings = list(tmp_path.glob("backfill-assets-java-*/*"))
            assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in settings)
            time.sleep(0.02)
        assert process.returncode == 0
        assert process.stdout is not None
        assert process.stdout.read().split() == ["True"]
    assert "org.apache.spark.deploy.SparkSubmit" in arguments
    assert not [argument for argument in arguments if "hush" in argument]
    assert not list(tmp_path.glob("backfill-assets-java-*"))


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("memory", "lots", "Java ended before Spark began: mend what it printed"),
        ("extraJavaOptions", "-Da='b", "spark.driver.extraJavaOptions: a quote is not closed"),
    ],
)
@pytest.mark.usefixtures("spark")  # Java is there.
# PySpark leaves the pipe open of a Java that has ended.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_java_that_does_not_start_is_one_line_and_leaves_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_gateway", None)  # as in a process without a session
    with pytest.raises(BackfillError, match=line):
        start_context({f"spark.driver.{name}": value})
    assert not list(tmp_path.iterdir())

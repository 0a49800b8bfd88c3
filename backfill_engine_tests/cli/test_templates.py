"""Templates: those that come with the package, a user's own, and what is wrong with a file."""

from pathlib import Path

import pytest

from backfill_engine.cli.launch_options import read_template, read_templates
from backfill_engine.errors import SettingsError
from backfill_engine.grains.chunk_sizes import parse_chunk_size
from backfill_engine.orchestration.planning.plans import Only
from backfill_engine.publishing.pacing import parse_window


def test_those_of_the_package_can_be_honoured_and_say_when() -> None:
    found = read_templates(None)
    assert set(found) == {"repair", "logic_change", "full_refresh"}
    for template in found.values():
        assert template.when.endswith(".")
        assert template.only is not None
        assert {*template.only.split(",")} <= {*Only}
        if template.chunk:
            parse_chunk_size(template.chunk)
        if template.window:
            parse_window(template.window)
        # What follows is computed whole, or as far as it is stale by then: chunks tell that.
        assert not template.downstream or template.chunk
    assert found["logic_change"].downstream, "what reads the tables is to change, too"


def test_a_users_file_takes_their_place(tmp_path: Path) -> None:
    path = tmp_path / "templates.toml"
    path.write_text('[quarter]\nwhen = "At its end."\nchunk = "months=3"\n')
    assert read_template("quarter", path).chunk == "months=3"
    with pytest.raises(
        SettingsError, match=r"no template repair; there are: quarter: At its end\."
    ):
        read_template("repair", path)
    assert read_template(None, path).chunk is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nchunk = 'months=1'\n", r"a\.when: Field required"),
        ("[a]\nwhen = 'x'\nchunks = 'months=1'\n", r"a\.chunks: Extra inputs"),
        ("[a]\nwhen = 'x'\npriority = 'high'\n", r"a\.priority: Input should be a valid integer"),
        ("when = 'x'\n", r"when: Input should be"),
        ("[a\n", "Expected"),
        ("", "no template a; there are: "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "templates.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_template("a", path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere can't be read: No such file"):
        read_templates(tmp_path / "nowhere")

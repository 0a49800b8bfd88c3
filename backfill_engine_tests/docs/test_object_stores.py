"""The other project of `docs/object-stores.md` reads a table by its own settings and keys."""

from typing import cast

import pyarrow as pa
import pytest
from dagster import Definitions
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value
from deltalake import write_deltalake

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.object_store import ACCESS_KEY, BUCKET, SECRET_KEY, ObjectStore
from backfill_engine_tests.pages import find_modules
from backfill_engine_tests.project import CARRIER_DELAYS

ROOT = f"s3://{BUCKET}/other-project"


# dagster-deltalake's own call
@pytest.mark.filterwarnings("ignore:The `dict` method is deprecated")
def test_the_other_project_reads_with_keys_that_the_ui_does_not_show(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Warehouse(ROOT).uri(CARRIER_DELAYS).replace("s3a://", "s3://")
    write_deltalake(place, pa.table({"carrier": ["UA", "B6", "UA"], "flights": [1, 2, 3]}))
    for name in object_store.environment:
        monkeypatch.delenv(name)
    monkeypatch.setenv("READER_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("READER_SECRET", SECRET_KEY)
    (module,) = find_modules("object-stores.md").values()
    module = module.replace("http://localhost:9000", object_store.endpoint)
    module = module.replace("s3://bucket/warehouse", ROOT)
    names: dict[str, object] = {}
    exec(compile(module, "definitions.py", "exec"), names)
    defs = cast("Definitions", names["defs"])
    run = defs.resolve_implicit_global_asset_job_def().execute_in_process()
    (materialization,) = run.asset_materializations_for_node("delay_report")
    found = {name: value.value for name, value in materialization.metadata.items()}
    assert (found["version"], found["carriers"]) == (0, 2)
    shown = serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    assert "READER_SECRET" in shown
    assert SECRET_KEY not in shown

"""Which upstream partitions a partition needs: neighbours by place are those that Dagster gives."""

from backfill_engine.orchestration.due.readiness import (
    find_upstream_keys,
    find_upstream_tables,
    get_partitions_def,
)
from backfill_engine_tests.project import defs

GRAPH = defs.get_repository_def().asset_graph


def test_windows_of_all_tables_are_those_that_dagster_maps() -> None:
    compared = 0
    for asset_key in GRAPH.toposorted_asset_keys:
        if GRAPH.get(asset_key).partitions_def is None:
            continue
        down = get_partitions_def(GRAPH, asset_key)
        every = down.get_partition_keys()
        keys = [*every[:9], *every[-9:]]
        for upstream, mapping in find_upstream_tables(GRAPH, asset_key).items():
            up = get_partitions_def(GRAPH, upstream)
            found = find_upstream_keys(GRAPH, asset_key, upstream, mapping, keys)
            for key in keys:
                mapped = mapping.get_upstream_mapped_partitions_result_for_partitions(
                    down.subset_with_partition_keys([key]), down, up
                )
                expected = sorted(mapped.partitions_subset.get_partition_keys())
                assert found[key] == expected, (asset_key, upstream, key)
                compared += 1
    assert compared > 100

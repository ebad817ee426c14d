"""Tables out of images."""

import pytest

pandas = pytest.importorskip("pandas")


def test_tables_out_of_images_that_others_made(mtools_fat, makefs_ffs, mke2fs_ext4):
    for image in (mtools_fat, makefs_ffs, mke2fs_ext4):
        table = pandas.read_csv(f"volary://docs/a.csv::{image}")
        assert table.to_dict("list") == {"name": ["ann", "bob"], "count": [1, 22]}


def test_tables_into_an_image(fat):
    table = pandas.DataFrame({"x": range(1000)})
    how = {"fo": fat, "write": True}
    table.to_csv("volary://out/t.csv.gz", index=False, storage_options=how)
    back = pandas.read_csv("volary://out/t.csv.gz", storage_options=how)
    assert back.equals(table)
    import fsspec

    fsspec.filesystem("volary", **how).close()

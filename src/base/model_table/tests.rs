//! Tests of the model table: the file that castor brings, and files that are none.

use super::ModelTable;

#[test]
fn the_file_is_whole() {
    let table = ModelTable::parse(include_str!("models.toml")).unwrap();
    assert!(table.rows.len() > 20);
}

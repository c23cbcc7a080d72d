use store::{Store, WindowRow};

#[test]
fn each_window_has_its_place() {
    let store = Store::in_memory().unwrap();
    let left = WindowRow {
        x: -1200,
        y: 0,
        width: 800,
        height: 600,
        maximised: false,
    };
    let full = WindowRow {
        maximised: true,
        ..left
    };
    assert_eq!(store.windows().get("main").unwrap(), None);
    store.windows().set("main", &left).unwrap();
    store.windows().set("quick", &full).unwrap();
    assert_eq!(store.windows().get("main").unwrap(), Some(left));
    store.windows().set("main", &full).unwrap();
    assert_eq!(store.windows().get("main").unwrap(), Some(full));
}

use serde_json::json;
use store::Store;

#[test]
fn a_key_keeps_its_last_value_of_any_shape() {
    let store = Store::in_memory().unwrap();
    let settings = store.settings();
    assert_eq!(settings.get("user.theme").unwrap(), None);
    for value in [
        json!("dark"),
        json!(null),
        json!(0.6),
        json!({ "a": [1, "é"] }),
    ] {
        settings.set("user.theme", &value).unwrap();
        assert_eq!(settings.get("user.theme").unwrap(), Some(value));
    }
}

#[test]
fn keys_are_found_by_how_they_begin() {
    let store = Store::in_memory().unwrap();
    for key in ["user.b", "user.a", "app.model", "user_x", "User.c"] {
        store.settings().set(key, &json!(key)).unwrap();
    }
    let found = store.settings().with_prefix("user.").unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["user.a", "user.b"]);
    assert_eq!(store.settings().get("user.").unwrap(), None);
}

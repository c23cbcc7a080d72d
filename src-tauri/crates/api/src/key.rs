//! The key of the local API. Only its hash is stored and passed on.

/// Hash of a key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// Returns the hash of a key.
    #[must_use]
    pub fn of(key: &str) -> ApiKey {
        ApiKey(blake3::hash(key.as_bytes()).to_hex().to_string())
    }

    /// Returns true for the key. The time does not depend on the place where another key differs.
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        let stored = blake3::Hash::from_hex(&self.0);
        stored.is_ok_and(|stored| stored == blake3::hash(key.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_hash_alone() {
        let key = ApiKey::of("gold-1");
        assert!(key.is("gold-1") && !key.is("gold-2") && !key.is(""));
        let stored = serde_json::to_string(&key).expect("plain data");
        assert!(!stored.contains("gold-1"));
        assert!(!ApiKey("damaged".to_owned()).is("damaged"));
    }
}

//! The tools of the app.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::tool::Tool;

/// Tools that come and go, such as those of MCP servers.
pub trait ToolProvider: Send + Sync {
    /// Returns the present tools.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// The tools of the app.
#[derive(Default)]
pub struct Registry {
    tools: RwLock<Vec<Arc<dyn Tool>>>,
    providers: RwLock<Vec<Arc<dyn ToolProvider>>>,
}

impl Registry {
    /// Makes a registry of these tools.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Registry {
        Registry {
            tools: RwLock::new(tools),
            providers: RwLock::default(),
        }
    }

    /// Adds a tool.
    pub fn add(&self, tool: Arc<dyn Tool>) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        tools.push(tool);
    }

    /// Adds the tools of a provider, whatever they are at a time.
    pub fn attach(&self, provider: Arc<dyn ToolProvider>) {
        let providers = self.providers.write();
        let mut providers = providers.unwrap_or_else(PoisonError::into_inner);
        providers.push(provider);
    }

    /// Returns the present tools, the built-in ones first. Of tools with the same name the first one counts.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.tools.read();
        let mut tools = tools.unwrap_or_else(PoisonError::into_inner).clone();
        let providers = self.providers.read();
        let providers = providers.unwrap_or_else(PoisonError::into_inner).clone();
        tools.extend(providers.iter().flat_map(|provider| provider.tools()));
        let mut names = HashSet::new();
        tools.retain(|tool| names.insert(tool.info().definition.name.clone()));
        tools
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.tools().into_iter();
        tools.find(|tool| tool.info().definition.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::tool::{Effects, ToolError, ToolInfo, ToolOutput, ToolRun};

    /// A tool with a name and a title.
    struct Named(&'static str, &'static str);

    impl Tool for Named {
        fn info(&self) -> Arc<ToolInfo> {
            Arc::new(ToolInfo::built_in(
                self.0,
                self.1,
                "",
                json!({}),
                Effects::default(),
            ))
        }

        fn run(&self, _: &Map<String, Value>, _: &ToolRun<'_>) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::new(""))
        }
    }

    /// A provider whose tools change.
    #[derive(Default)]
    struct Changing(Mutex<Vec<Arc<dyn Tool>>>);

    impl ToolProvider for Changing {
        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            self.0.lock().expect("no panic").clone()
        }
    }

    fn titles(registry: &Registry) -> Vec<String> {
        let tools = registry.tools();
        tools.iter().map(|tool| tool.info().title.clone()).collect()
    }

    #[test]
    fn the_first_tool_of_a_name_counts_and_provided_ones_come_and_go() {
        let registry = Registry::new(vec![Arc::new(Named("a", "own"))]);
        registry.add(Arc::new(Named("a", "second")));
        let provider = Arc::new(Changing::default());
        registry.attach(Arc::clone(&provider) as Arc<dyn ToolProvider>);
        assert_eq!(titles(&registry), ["own"]);

        let theirs: [Arc<dyn Tool>; 3] = [
            Arc::new(Named("a", "theirs")),
            Arc::new(Named("b", "theirs")),
            Arc::new(Named("b", "again")),
        ];
        provider.0.lock().expect("no panic").extend(theirs);
        assert_eq!(titles(&registry), ["own", "theirs"]);
        assert_eq!(
            registry
                .get("b")
                .map(|tool| tool.info().title.clone())
                .as_deref(),
            Some("theirs")
        );

        provider.0.lock().expect("no panic").clear();
        assert_eq!(titles(&registry), ["own"]);
        assert!(registry.get("b").is_none());
    }
}

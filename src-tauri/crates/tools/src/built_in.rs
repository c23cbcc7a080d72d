//! The list of built-in tools.

use std::sync::Arc;

use system::child::Child;

use crate::calculator::Calculator;
use crate::clock::now;
use crate::date_time::DateTimeTool;
use crate::goldcrest_help::GoldcrestHelp;
use crate::python::Python;
use crate::search_chats::{ChatSearch, SearchChats};
use crate::tool::Tool;

/// Returns the built-in tools. `program` runs [`serve`](crate::serve), and `search` finds chats.
#[must_use]
pub fn built_in(program: &Child, search: Arc<dyn ChatSearch>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Calculator::new(program.clone())),
        Arc::new(DateTimeTool::new(now)),
        Arc::new(SearchChats::new(search)),
        Arc::new(GoldcrestHelp::new()),
        Arc::new(Python::new(program.clone())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::program;
    use crate::search_chats::tests::NoChats;

    #[test]
    fn small_models_can_read_what_the_tools_do() {
        for tool in built_in(&program(), Arc::new(NoChats)) {
            let definition = &tool.info().definition;
            let name = &definition.name;
            assert!(definition.description.len() < 400, "{name}");
            let size = definition.parameters.to_string().len();
            assert!(size < 500, "{name}: {size}");
            assert_eq!(
                definition.parameters["additionalProperties"], false,
                "{name}"
            );
        }
    }
}

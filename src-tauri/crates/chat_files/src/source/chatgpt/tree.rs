//! The nodes of a chat, each with one parent.

use std::collections::HashMap;

use crate::source::value::ForeignValue;

/// Nodes by their indices in the file.
pub(super) struct NodeTree<'a> {
    pub nodes: Vec<&'a ForeignValue>,
    pub by_id: HashMap<&'a str, usize>,
    pub parents: Vec<Option<usize>>,
    pub children: Vec<Vec<usize>>,
    pub roots: Vec<usize>,
}

impl<'a> NodeTree<'a> {
    /// Reads the nodes of a mapping. A node names its parent, and a parent lists its children: if one of the two is
    /// missing or wrong, the other one counts.
    pub fn of(mapping: Option<&'a ForeignValue>) -> NodeTree<'a> {
        let mut by_id = HashMap::new();
        let mut nodes = Vec::new();
        match mapping {
            Some(ForeignValue::Object(fields)) => {
                for (id, node) in fields {
                    // The last of several nodes with one id counts, as in any JSON.
                    let at = *by_id.entry(id.as_ref()).or_insert(nodes.len());
                    match nodes.get_mut(at) {
                        Some(before) => *before = node,
                        None => nodes.push(node),
                    }
                }
            }
            Some(ForeignValue::List(items)) => {
                for node in items {
                    if let Some(id) = node.text("id") {
                        by_id.entry(id).or_insert(nodes.len());
                    }
                    nodes.push(node);
                }
            }
            _ => {}
        }
        let listed = |node: usize| {
            let node: &'a ForeignValue = nodes[node];
            let ids = node.items("children").iter().filter_map(|id| id.as_text());
            ids.filter_map(|id| by_id.get(id).copied())
        };
        let named = |node: &&'a ForeignValue| by_id.get(node.text("parent")?).copied();
        let mut parents: Vec<Option<usize>> = nodes.iter().map(named).collect();
        for node in 0..nodes.len() {
            for child in listed(node).filter(|child| *child != node) {
                parents[child] = parents[child].or(Some(node));
            }
        }
        let mut is_placed = vec![false; nodes.len()];
        let listed_below = |node: usize| {
            let own = listed(node).filter(|child| parents[*child] == Some(node));
            let placed = own.filter(|child| !std::mem::replace(&mut is_placed[*child], true));
            placed.collect()
        };
        let mut children: Vec<Vec<usize>> = (0..nodes.len()).map(listed_below).collect();
        for (node, parent) in parents.iter().enumerate() {
            if let (Some(parent), false) = (*parent, is_placed[node]) {
                children[parent].push(node);
            }
        }
        let roots = (0..nodes.len()).filter(|node| parents[*node].is_none());
        let roots = roots.collect();
        NodeTree {
            nodes,
            by_id,
            parents,
            children,
            roots,
        }
    }
}

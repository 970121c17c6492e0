//! The folder facet as a tree.

use maud::{Markup, html};
use windrow_file_search::ValueCount;

use super::address::SearchAddress;
use super::facet_value::value;
use crate::texts::search as texts;

/// A folder with its subfolders.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FolderTree {
    /// The full path.
    path: String,
    /// The label: the last component of the path, or several if intermediate folders were merged.
    label: String,
    count: i64,
    children: Vec<FolderTree>,
}

/// The number of subfolders that are shown.
const CHILDREN_SHOWN: usize = 12;
/// The maximum depth below the root.
const DEPTH_MAX: usize = 5;

impl FolderTree {
    /// Builds a tree from paths and their document counts. A count includes all documents below the
    /// path.
    pub fn new(counts: &[ValueCount]) -> FolderTree {
        let mut sorted: Vec<&ValueCount> = counts.iter().collect();
        sorted.sort();
        let mut root = FolderTree::default();
        for folder in sorted {
            root.insert(&folder.value, folder.count);
        }
        root.count = root.children.iter().map(|child| child.count).sum();
        root.sort();
        root.join();
        root
    }

    /// Inserts a path. All its ancestors were inserted before.
    fn insert(&mut self, path: &str, count: i64) {
        let parent = self
            .children
            .iter_mut()
            .find(|child| is_below(path, &child.path));
        if let Some(parent) = parent {
            parent.insert(path, count);
            return;
        }
        let label = match self.path.as_str() {
            "" => path,
            above => path
                .get(above.len()..)
                .unwrap_or(path)
                .trim_start_matches('/'),
        };
        self.children.push(FolderTree {
            path: path.to_owned(),
            label: label.to_owned(),
            count,
            children: Vec::new(),
        });
    }

    fn sort(&mut self) {
        self.children.sort_by(|one, other| {
            other
                .count
                .cmp(&one.count)
                .then_with(|| one.label.cmp(&other.label))
        });
        self.children.iter_mut().for_each(FolderTree::sort);
    }

    /// Merges a folder with its only subfolder if that contains all its documents.
    fn join(&mut self) {
        self.children.iter_mut().for_each(FolderTree::join);
        if let [child] = self.children.as_mut_slice()
            && child.count == self.count
        {
            let child = std::mem::take(child);
            let above = self.label.trim_end_matches('/');
            self.label = match (above, self.label.as_str()) {
                ("", "") => child.label,
                _ => format!("{above}/{}", child.label.trim_start_matches('/')),
            };
            self.path = child.path;
            self.children = child.children;
        }
    }

    fn contains(&self, chosen: &str) -> bool {
        self.path == chosen || is_below(chosen, &self.path)
    }
}

fn is_below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.starts_with('/') || above.ends_with('/') && !rest.is_empty())
}

/// Shows the tree. The ancestors of the selected folder are expanded.
pub fn folder_tree(tree: &FolderTree, address: &SearchAddress) -> Markup {
    let roots = if tree.path.is_empty() {
        tree.children.as_slice()
    } else {
        std::slice::from_ref(tree)
    };
    html! { ul .tree { @for root in roots { (folder(root, address, 0)) } } }
}

fn folder(tree: &FolderTree, address: &SearchAddress, depth: usize) -> Markup {
    let link = value(
        address,
        "dir",
        &tree.path,
        &shortened(&tree.label),
        tree.count,
    );
    let chosen = address.filter("dir");
    let is_open = depth == 0 || chosen.is_some_and(|chosen| tree.contains(chosen));
    let shown = tree.children.iter().take(CHILDREN_SHOWN);
    let left = tree.children.len().saturating_sub(CHILDREN_SHOWN);
    html! {
        li {
            @if tree.children.is_empty() || depth >= DEPTH_MAX {
                (link)
            } @else {
                details open[is_open] {
                    summary aria-label=(texts::folders_of(&tree.label)) {}
                    ul {
                        @for child in shown { (folder(child, address, depth + 1)) }
                        @if left > 0 { li .muted .small { (texts::more_folders(left)) } }
                    }
                }
                (link)
            }
        }
    }
}

/// The number of trailing path components of a label that are shown.
const PARTS_SHOWN: usize = 2;

/// Shortens a long label to its trailing components, which distinguish folders best.
fn shortened(label: &str) -> String {
    let parts: Vec<&str> = label.split('/').collect();
    match parts
        .len()
        .checked_sub(PARTS_SHOWN)
        .and_then(|at| parts.get(at..))
    {
        Some(last) if parts.len() > PARTS_SHOWN + 1 => format!("…/{}", last.join("/")),
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(tree: &FolderTree, depth: usize, into: &mut Vec<String>) {
        into.push(format!(
            "{}{} {}",
            " ".repeat(depth),
            tree.label,
            tree.count
        ));
        for child in &tree.children {
            labels(child, depth + 1, into);
        }
    }

    fn check(paths: &[(&str, i64)], expected: &[&str]) {
        let counts: Vec<_> = paths
            .iter()
            .map(|(path, count)| ValueCount {
                value: (*path).to_owned(),
                count: *count,
            })
            .collect();
        let mut found = Vec::new();
        labels(&FolderTree::new(&counts), 0, &mut found);
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_become_a_tree() {
        check(
            &[
                ("/", 9),
                ("/home", 9),
                ("/home/ada", 9),
                ("/home/ada/b", 4),
                ("/home/ada/a", 5),
                ("/home/ada/a/x", 5),
            ],
            &["/home/ada 9", " a/x 5", " b 4"],
        );
        check(
            &[("/", 3), ("/a", 1), ("/ab", 2), ("/ab/c", 1)],
            &["/ 3", " ab 2", "  c 1", " a 1"],
        );
        check(&[], &[" 0"]);
        let cases = [
            ("/home/ada/a/b", "…/a/b"),
            ("/a", "/a"),
            ("a/b", "a/b"),
            ("/a/b", "/a/b"),
        ];
        for (label, expected) in cases {
            assert_eq!(shortened(label), expected);
        }
    }
}

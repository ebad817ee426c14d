//! The steps of a change, so that all can be undone until it is complete.

use crate::inodes::{Inode, Inodes, Node, Nodes};
use volary_block::{Cache, Stage};
use volary_core::{Kind, Result};

/// A step that was done.
enum Step<I> {
    Node(u32, Option<Box<Node<I>>>),
    Bytes(u64, Vec<u8>, Stage),
}

/// The steps of a change: inodes and bytes. After undoing them, the driver frees the blocks that
/// the change allocated, since bytes may have been written there.
pub struct Undo<I> {
    steps: Vec<Step<I>>,
    /// Numbers of nodes whose previous state was saved.
    touched: Vec<u32>,
}

impl<I> Default for Undo<I> {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            touched: Vec::new(),
        }
    }
}

impl<I: Inode> Undo<I> {
    /// Returns an inode in memory, for changes. It is dirty from now on.
    ///
    /// # Errors
    /// As [`Inodes::inode`].
    pub fn node<'n>(
        &mut self,
        nodes: &'n mut Nodes<I>,
        reader: &impl Inodes<Inode = I>,
        number: u32,
    ) -> Result<&'n mut Node<I>> {
        if !self.touched.contains(&number) {
            let before = nodes.get(number).cloned();
            if before.is_none() {
                let inode = reader.inode(number.into())?;
                nodes.put(number, Some(Node::of(inode, nodes.floor())));
            }
            self.note_node(number, before);
        }
        nodes.touch(number);
        nodes.get_mut(number).ok_or_else(|| Kind::Stale.into())
    }

    /// Puts a node in the place of a free inode. It is dirty from now on.
    pub fn put_node(&mut self, nodes: &mut Nodes<I>, number: u32, node: Node<I>) {
        let before = nodes.get(number).cloned();
        nodes.put(number, Some(node));
        self.note_node(number, before);
        nodes.touch(number);
    }

    fn note_node(&mut self, number: u32, before: Option<Node<I>>) {
        self.steps.push(Step::Node(number, before.map(Box::new)));
        self.touched.push(number);
    }

    /// Writes metadata: bytes that are no file's content and lie in one block.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&mut self, cache: &Cache, at: u64, bytes: &[u8], stage: Stage) -> Result<()> {
        let mut before = vec![0; bytes.len()];
        cache.read(at, &mut before)?;
        cache.write(at, bytes, stage)?;
        self.steps.push(Step::Bytes(at, before, stage));
        Ok(())
    }

    /// Returns the numbers of changed nodes.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// Returns the changed inodes, as they were before and as they are now.
    pub fn changed<'a>(&'a self, nodes: &'a Nodes<I>) -> impl Iterator<Item = (&'a I, &'a I)> {
        self.steps.iter().filter_map(|step| {
            let Step::Node(number, before) = step else {
                return None;
            };
            let now = nodes.get(*number)?;
            // An inode that was not in memory is unchanged on disk.
            let before = before.as_ref().map_or(&now.disk, |node| &node.mem);
            Some((before, &now.mem))
        })
    }

    /// Undoes all steps, the last first.
    ///
    /// # Errors
    /// `Io`. Memory and disk then differ.
    pub fn take_back(self, cache: &Cache, nodes: &mut Nodes<I>) -> Result<()> {
        for step in self.steps.into_iter().rev() {
            match step {
                Step::Node(number, node) => nodes.put(number, node.map(|node| *node)),
                Step::Bytes(at, bytes, stage) => cache.write(at, &bytes, stage)?,
            }
        }
        Ok(())
    }
}

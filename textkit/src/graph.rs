// SPDX-License-Identifier: Apache-2.0
//! How deep a compiler recurses that goes through a graph depth first: bounded before it starts.

/// For each node the weight of the heaviest way that ends in it, itself included. Nodes of a cycle
/// (a strongly connected component; R. Tarjan, "Depth-first search and linear graph algorithms",
/// 1972) count together: whoever enters one may pass them all. An upper bound of the recursion of
/// any depth-first walk, whatever its order. `edges[n]` are below `edges.len()`, which is also the
/// length of `weights`. Linear and without recursion.
pub fn heaviest_ways(edges: &[Vec<usize>], weights: &[usize]) -> Vec<usize> {
    let components = Components::of(edges);
    let mut weight = vec![0usize; components.members.len()];
    for (node, &component) in components.of_node.iter().enumerate() {
        weight[component] = weight[component].saturating_add(weights[node]);
    }
    // Components are numbered from the ends of all ways on.
    let mut before = vec![0usize; weight.len()];
    for component in (0..weight.len()).rev() {
        let total = before[component].saturating_add(weight[component]);
        weight[component] = total;
        for &next in components.members[component].iter().flat_map(|&node| &edges[node]) {
            let next = components.of_node[next];
            if next != component {
                before[next] = before[next].max(total);
            }
        }
    }
    components.of_node.iter().map(|&component| weight[component]).collect()
}

struct Components {
    of_node: Vec<usize>,
    members: Vec<Vec<usize>>,
}

const NONE: usize = usize::MAX;

impl Components {
    fn of(edges: &[Vec<usize>]) -> Components {
        let count = edges.len();
        let mut found = Components { of_node: vec![NONE; count], members: Vec::new() };
        let (mut number, mut lowest) = (vec![NONE; count], vec![0; count]);
        let (mut next_number, mut open) = (0, Vec::new());
        for root in 0..count {
            // The path, and which edge to follow next at each of its nodes.
            let mut path = if number[root] == NONE { vec![(root, 0)] } else { Vec::new() };
            while let Some(&(node, edge)) = path.last() {
                if edge == 0 && number[node] == NONE {
                    (number[node], lowest[node]) = (next_number, next_number);
                    next_number += 1;
                    open.push(node);
                }
                if let Some(&to) = edges[node].get(edge) {
                    path.last_mut().unwrap().1 += 1;
                    if number[to] == NONE {
                        path.push((to, 0));
                    } else if found.of_node[to] == NONE {
                        lowest[node] = lowest[node].min(number[to]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    lowest[parent] = lowest[parent].min(lowest[node]);
                }
                if lowest[node] == number[node] {
                    found.close(node, &mut open);
                }
            }
        }
        found
    }

    /// Everything still open from `root` on is one component.
    fn close(&mut self, root: usize, open: &mut Vec<usize>) {
        let from = open.iter().rposition(|&node| node == root).unwrap();
        let members = open.split_off(from);
        for &member in &members {
            self.of_node[member] = self.members.len();
        }
        self.members.push(members);
    }
}

#[cfg(test)]
mod tests {
    use super::heaviest_ways;

    #[test]
    fn the_heaviest_way_counts_and_not_the_shortest() {
        let edges = [vec![1, 2], vec![3], vec![3], vec![]];
        assert_eq!(heaviest_ways(&edges, &[1, 5, 2, 1]), [1, 6, 3, 7]);
    }

    #[test]
    fn the_nodes_of_a_cycle_count_together() {
        let edges = [vec![1], vec![2, 3], vec![1], vec![], vec![4, 0]];
        assert_eq!(heaviest_ways(&edges, &[1, 1, 1, 1, 1]), [2, 4, 4, 5, 1]);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let edges: Vec<Vec<usize>> = (0..300_000).map(|i| Vec::from([(i + 1) % 300_000])).collect();
        assert_eq!(heaviest_ways(&edges, &vec![1; 300_000])[7], 300_000);
        let mut edges = edges;
        edges[299_999].clear();
        assert_eq!(heaviest_ways(&edges, &vec![1; 300_000])[7], 8);
    }
}

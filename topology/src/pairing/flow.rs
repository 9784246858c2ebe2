//! Min-cost flow with costs that are compared key by key.
//!
//! Successive shortest paths (Bellman–Ford with a queue): each augmentation adds one unit along the cheapest path, so
//! the flow is the largest possible, and the cheapest of that size. Costs are vectors under lexicographic order, which
//! is an ordered group: sums and differences keep the order, so the method stays exact without any weights that could
//! overflow. `pathfinding`'s Kuhn–Munkres takes one number per edge and every row in the matching; both do not hold
//! here.

use std::cmp::Ordering;
use std::collections::VecDeque;

/// A cost: keys in the order of their importance. Keys beyond the end are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost(pub(super) Vec<i64>);

impl Cost {
    fn plus(&self, other: &Self, sign: i64) -> Self {
        let length = self.0.len().max(other.0.len());
        let key = |keys: &[i64], at: usize| keys.get(at).copied().unwrap_or(0);
        Self(
            (0..length)
                .map(|at| key(&self.0, at) + sign * key(&other.0, at))
                .collect(),
        )
    }

    fn is_less(&self, other: &Self) -> bool {
        let length = self.0.len().max(other.0.len());
        let key = |keys: &[i64], at: usize| keys.get(at).copied().unwrap_or(0);
        let order = (0..length)
            .map(|at| key(&self.0, at).cmp(&key(&other.0, at)))
            .find(|order| order.is_ne());
        order == Some(Ordering::Less)
    }
}

/// A directed network; edges of capacity one.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Edge 2k and its reverse 2k+1.
    edges: Vec<Edge>,
    outgoing: Vec<Vec<usize>>,
}

#[derive(Clone, Debug)]
struct Edge {
    to: usize,
    free: bool,
    cost: Cost,
}

impl Network {
    pub(super) fn with_nodes(nodes: usize) -> Self {
        Self {
            edges: Vec::new(),
            outgoing: vec![Vec::new(); nodes],
        }
    }

    /// Adds an edge that carries one unit; returns its number.
    pub(super) fn connect(&mut self, from: usize, to: usize, cost: Cost) -> usize {
        let number = self.edges.len();
        let back = Cost::default().plus(&cost, -1);
        self.edges.push(Edge {
            to,
            free: true,
            cost,
        });
        self.edges.push(Edge {
            to: from,
            free: false,
            cost: back,
        });
        self.outgoing[from].push(number);
        self.outgoing[to].push(number + 1);
        number
    }

    pub(super) fn is_used(&self, edge: usize) -> bool {
        !self.edges[edge].free
    }

    /// Sends as many units as possible, at the least cost.
    pub(super) fn saturate(&mut self, source: usize, sink: usize) {
        while let Some(path) = self.cheapest_path(source, sink) {
            for edge in path {
                self.edges[edge].free = false;
                self.edges[edge ^ 1].free = true;
            }
        }
    }

    fn cheapest_path(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let arrived_by = self.shortest(source);
        let mut path = Vec::new();
        let mut at = sink;
        while at != source {
            let edge = arrived_by[at]?;
            path.push(edge);
            at = self.edges[edge ^ 1].to;
        }
        Some(path)
    }

    /// For every node the edge by which the cheapest path arrives. There are no negative cycles: the network that the
    /// caller builds has no cycles at all, and every augmentation is a cheapest one.
    fn shortest(&self, source: usize) -> Vec<Option<usize>> {
        let mut cost: Vec<Option<Cost>> = vec![None; self.outgoing.len()];
        let mut arrived_by = vec![None; self.outgoing.len()];
        let mut waiting = vec![false; self.outgoing.len()];
        let mut queue = VecDeque::from([source]);
        cost[source] = Some(Cost::default());
        while let Some(node) = queue.pop_front() {
            waiting[node] = false;
            let Some(here) = cost[node].clone() else {
                continue;
            };
            for &number in self.outgoing[node]
                .iter()
                .filter(|number| self.edges[**number].free)
            {
                let edge = &self.edges[number];
                let there = here.plus(&edge.cost, 1);
                if cost[edge.to]
                    .as_ref()
                    .is_none_or(|known| there.is_less(known))
                {
                    cost[edge.to] = Some(there);
                    arrived_by[edge.to] = Some(number);
                    if !std::mem::replace(&mut waiting[edge.to], true) {
                        queue.push_back(edge.to);
                    }
                }
            }
        }
        arrived_by
    }
}

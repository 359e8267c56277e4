//! Made-up pipelines: sources, bronze, silver and gold, each reading a few of the layer before, mostly near ones.
//!
//! Names and numbers only, so that benchmarks and unit tests of any crate can use this file.

/// Nodes as (key, layer) and edges as pairs of nodes.
pub struct Medallion {
    pub nodes: Vec<(String, usize)>,
    pub edges: Vec<(usize, usize)>,
}

const LAYERS: [(&str, usize); 4] = [("src", 30), ("bronze", 30), ("silver", 25), ("gold", 15)];

/// Returns a graph of `count` nodes; the same for the same seed.
pub fn medallion(count: usize, seed: u64) -> Medallion {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut graph = Medallion { nodes: Vec::new(), edges: Vec::new() };
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for (layer, (name, percent)) in LAYERS.iter().enumerate() {
        let size = match layer + 1 == LAYERS.len() {
            true => count - graph.nodes.len(),
            false => count * percent / 100,
        };
        let nodes: Vec<usize> = (0..size).map(|index| graph.nodes.len() + index).collect();
        for (index, &node) in nodes.iter().enumerate() {
            graph.nodes.push((format!("{name}.table_{index:03}"), layer));
            let Some(before) = layers.last().filter(|before| !before.is_empty()) else { continue };
            // Bronze tables read one source; later layers one to three, mostly near ones.
            let reads = if layer == 1 { 1 } else { 1 + random.below(3) };
            let home = index * before.len() / size.max(1);
            for _ in 0..reads {
                let from = match random.below(10) {
                    0 if layer > 1 => layers[layer - 2][random.below(layers[layer - 2].len())],
                    1 => before[random.below(before.len())],
                    _ => before[(home + random.below(4)).min(before.len() - 1)],
                };
                if !graph.edges.contains(&(from, node)) {
                    graph.edges.push((from, node));
                }
            }
        }
        layers.push(nodes);
    }
    graph
}

/// A small generator of numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}

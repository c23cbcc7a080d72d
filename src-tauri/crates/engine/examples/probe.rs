//! probe FILE prompt generate depth runs
use engine::{BenchParams, Engine, LoadOptions};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n = |i: usize| a.get(i).and_then(|s| s.parse().ok()).unwrap_or(0);
    let mut e = Engine::open(
        a[1].as_ref(),
        &LoadOptions {
            context: Some(12000),
            ..Default::default()
        },
        &mut |_| {},
    )
    .unwrap();
    let p = BenchParams {
        prompt: n(2),
        generate: n(3),
        depth: n(4),
        chat: 0,
        lookup: false,
        repeats: 1,
    };
    let (mut pre, mut dec, mut bw) = (vec![], vec![], vec![]);
    for _ in 0..n(5).max(1) {
        let r = e.bench(&p).unwrap();
        pre.extend(r.prefill_tok_s);
        dec.extend(r.decode_tok_s);
        bw.push(r.read_bandwidth_gb_s);
    }
    for (name, v) in [("prefill", &mut pre), ("decode", &mut dec), ("bw", &mut bw)] {
        v.sort_by(f64::total_cmp);
        if !v.is_empty() {
            print!(
                "{name} best {:.1} median {:.1}  ",
                v[v.len() - 1],
                v[v.len() / 2]
            );
        }
    }
    println!();
}

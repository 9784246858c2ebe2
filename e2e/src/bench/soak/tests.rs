use super::*;

fn soak(own: &[(usize, u64)]) -> Soak {
    let memory = |&(percent, anon)| {
        (
            percent,
            Memory {
                anon,
                ..Memory::default()
            },
        )
    };
    Soak {
        allocates: 0,
        restarts: 0,
        memory: own.iter().map(memory).collect(),
    }
}

#[test]
fn growth_counts_from_the_first_tenth_on() {
    assert_eq!(
        soak(&[(5, 10), (10, 100), (55, 400), (100, 120)]).growth(),
        20
    );
    assert_eq!(soak(&[(10, 100), (100, 90)]).growth(), -10);
    assert_eq!(soak(&[]).growth(), 0);
}

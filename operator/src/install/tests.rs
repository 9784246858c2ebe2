use super::policy::{binding, policy};

#[test]
fn the_policy_as_it_is_applied() {
    let (policy, binding) = (
        serde_yaml::to_string(&policy("gpu-rdma")),
        serde_yaml::to_string(&binding()),
    );
    insta::assert_snapshot!(format!("{}---\n{}", policy.unwrap(), binding.unwrap()));
}

use crds::node::Severity;

use super::*;
use crate::planner::driver_fixtures::{Fixture, gpu};

fn asks(mode: GpuDirectMode, required: bool) -> GpuDirect {
    GpuDirect { mode, required }
}

fn chosen(fixture: &Fixture, mode: GpuDirectMode) -> Choice {
    choose(&fixture.state, &fixture.machine.gpus, &asks(mode, false))
}

fn ids(choice: &Choice) -> Vec<&str> {
    choice
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect()
}

#[test]
fn dma_buf_is_chosen_where_kernel_driver_and_gpu_offer_it() {
    let choice = chosen(&Fixture::open_driver(), GpuDirectMode::Auto);
    assert_eq!(choice.reach, Reach::Way(Way::DmaBuf));
    assert_eq!(
        choice.reason,
        "DMA-BUF works with kernel 6.8.0-100-generic and the open GPU modules 570.86.15"
    );
    assert_eq!(ids(&choice), [""; 0]);
}

/// G7: an inbox `ib_core` makes peermem impossible, and that is no fault where DMA-BUF works.
#[test]
fn an_inbox_driver_is_fine_with_dma_buf_and_says_that_peermem_cannot_work() {
    let inbox = Fixture::open_driver().without_peer_memory();
    let choice = chosen(&inbox, GpuDirectMode::Auto);
    assert_eq!(choice.reach, Reach::Way(Way::DmaBuf));
    assert_eq!(ids(&choice), ["PEER_MEMORY_API_ABSENT"]);
    let closed = Fixture::closed_driver().without_peer_memory();
    let choice = chosen(&closed, GpuDirectMode::Auto);
    assert_eq!(choice.reach, Reach::Nothing);
    assert!(ids(&choice).contains(&"GPU_DIRECT_UNAVAILABLE"));
}

/// G15: EL8's 4.18 carries DMA-BUF by backport.
#[test]
fn an_old_kernel_with_a_backport_is_not_refused_by_its_number() {
    let el8 = Fixture::open_driver().kernel("4.18.0-553.el8_10.x86_64");
    assert_eq!(
        chosen(&el8, GpuDirectMode::DmaBuf).reach,
        Reach::Way(Way::DmaBuf)
    );
    let old = Fixture::open_driver().kernel("5.4.0-216-generic");
    let choice = chosen(&old, GpuDirectMode::DmaBuf);
    assert_eq!(
        (choice.reach, choice.reason.as_str()),
        (
            Reach::Nothing,
            "kernel 5.4.0-216-generic is older than 5.12"
        )
    );
}

/// G12: only a registration proves it.
#[test]
fn a_kernel_without_p2pdma_is_a_warning_and_an_unreadable_configuration_is_nothing() {
    let without = Fixture::open_driver().option("CONFIG_PCI_P2PDMA", "n");
    let choice = chosen(&without, GpuDirectMode::Auto);
    assert_eq!(choice.reach, Reach::Way(Way::DmaBuf));
    assert_eq!(ids(&choice), ["KERNEL_WITHOUT_P2PDMA"]);
    assert_eq!(choice.findings[0].severity, Severity::Warning);
}

/// G11, G14: the user library refuses.
#[test]
fn a_geforce_card_has_no_gpu_direct_and_no_advice_to_patch_anything() {
    let mut fixture = Fixture::open_driver();
    fixture.machine.gpus = vec![gpu(0, "NVIDIA GeForce RTX 5090")];
    let choice = chosen(&fixture, GpuDirectMode::Auto);
    assert!(ids(&choice).contains(&"GPU_WITHOUT_GPUDIRECT_RDMA"));
    let asked = asks(GpuDirectMode::Auto, true);
    let refused = refusal(
        &choice,
        &asked,
        &fixture.state.compat,
        &fixture.machine.gpus[0],
    )
    .unwrap();
    assert_eq!(refused.reason, NodeReason::GpuDirectUnavailable);
    assert!(refused.message.contains("GeForce RTX 5090"));
}

/// O1, O5, G5: loaded is ready, whatever modprobe would say and however empty /lib/modules is.
#[test]
fn a_loaded_peermem_is_ready_without_any_module_file() {
    let loaded = Fixture::closed_driver()
        .loaded("nvidia_peermem")
        .no_module_files();
    let choice = chosen(&loaded, GpuDirectMode::Peermem);
    assert_eq!(choice.reach, Reach::Way(Way::Peermem));
    assert_eq!(ids(&choice), [""; 0]);
}

/// G3: built in the wrong order.
#[test]
fn a_peermem_that_was_built_against_another_ofed_is_not_loaded() {
    let other = Fixture::closed_driver().checksums(Some(7), Some(9));
    let choice = chosen(&other, GpuDirectMode::Peermem);
    assert_eq!(choice.reach, Reach::Nothing);
    assert_eq!(
        ids(&choice),
        ["PEERMEM_BUILT_AGAINST_OTHER_OFED", "GPU_DIRECT_UNAVAILABLE"]
    );
    let without = Fixture::closed_driver().checksums(Some(7), None);
    let choice = chosen(&without, GpuDirectMode::Peermem);
    assert!(
        choice.reason.contains("built without an OFED"),
        "{}",
        choice.reason
    );
}

/// O2, G4: the module that is loaded works; the one on disk will not, and that shows before anything unloads it.
#[test]
fn an_ofed_upgrade_makes_gpu_modules_stale_at_once() {
    let stale = Fixture::closed_driver()
        .loaded("nvidia_peermem")
        .checksums(Some(8), Some(7));
    let choice = chosen(&stale, GpuDirectMode::Keep);
    assert_eq!(choice.reach, Reach::Way(Way::Peermem));
    assert_eq!(ids(&choice), ["GPU_MODULES_STALE_AFTER_OFED_UPGRADE"]);
    assert!(choice.findings[0].message.contains("dkms install"));
    let theirs = stale.gpu_operator();
    let choice = chosen(&theirs, GpuDirectMode::Keep);
    assert!(
        choice.findings[0].message.contains("delete its driver pod"),
        "{}",
        choice.findings[0].message
    );
}

#[test]
fn what_gpu_operator_owns_is_named_and_left_to_it() {
    let theirs = Fixture::closed_driver().gpu_operator();
    let choice = chosen(&theirs, GpuDirectMode::Peermem);
    assert_eq!(choice.reach, Reach::Nothing);
    assert!(ids(&choice).contains(&"GPU_OPERATOR_OWNS_DRIVER"));
}

#[test]
fn what_cannot_be_read_is_unknown_and_refuses_nobody() {
    let blind = Fixture::closed_driver().symbols_unreadable();
    let choice = chosen(&blind, GpuDirectMode::Peermem);
    assert_eq!(choice.reach, Reach::Unknown);
    assert_eq!(ids(&choice), ["GPU_DIRECT_UNKNOWN"]);
    let asked = asks(GpuDirectMode::Peermem, true);
    assert_eq!(
        refusal(&choice, &asked, &blind.state.compat, &blind.machine.gpus[0]),
        None
    );
}

#[test]
fn required_refuses_what_is_known_to_have_no_way() {
    let none = Fixture::closed_driver().without_peer_memory();
    let choice = chosen(&none, GpuDirectMode::Auto);
    let refused = |required| {
        let asked = asks(GpuDirectMode::Auto, required);
        refusal(&choice, &asked, &none.state.compat, &none.machine.gpus[0])
    };
    assert!(
        refused(true)
            .unwrap()
            .message
            .contains("there is no way to GPU memory")
    );
    assert_eq!(refused(false), None);
}

//! Variables that containers with pairs get on request. Pure; [`crate::devices`] puts them into the node file. The kubelet
//! merges the variables of all resources of a container, so only pairs have these.

use crds::cluster::Inject;
use topology::node_file::{EnvVar, NicList, NicListForm};

use crate::cdi;

/// The variable that names the NCCL topology file, where it is asked for.
#[must_use]
pub fn topology_file(inject: &Inject) -> Option<EnvVar> {
    inject.nccl_topo_file.then(|| EnvVar {
        name: "NCCL_TOPO_FILE".to_owned(),
        value: cdi::topology_file(),
    })
}

/// Variables that list NICs, those that are asked for. Destructured without `..`: a new variable cannot be forgotten.
pub fn nic_lists(inject: &Inject) -> impl Iterator<Item = NicList> {
    let Inject {
        nccl_topo_file: _,
        nccl_ib_hca,
        ucx_net_devices,
        nvshmem_hca_list,
    } = *inject;
    let lists = [
        (nccl_ib_hca, "NCCL_IB_HCA", NicListForm::Exact),
        (nvshmem_hca_list, "NVSHMEM_HCA_LIST", NicListForm::Ports),
        (ucx_net_devices, "UCX_NET_DEVICES", NicListForm::Ports),
    ];
    let asked = lists.into_iter().filter(|(asked, ..)| *asked);
    asked.map(|(_, name, form)| NicList {
        name: name.to_owned(),
        form,
    })
}

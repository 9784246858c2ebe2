//! What must be read for what is asked: parts of the host that take long are read only where something depends on them. Pure;
//! [`crate::session::Session`] carries it to [`crate::gather`].

use crds::fabric::LinkLayer;
use host::facts::network::Depth;
use host::facts::tuning::Scope;
use topology::fact::Fact;
use topology::machine::{self, Machine};
use topology::pci::PciAddress;

use crate::desired::Desired;

/// What must be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Parts of [`host::facts::tuning`].
    pub scope: Scope,
    /// How much of [`host::facts::network`]: all of it is a few dozen short programs.
    pub network: Depth,
    /// The link type that ports should have.
    pub link: Option<LinkLayer>,
}

impl Asked {
    /// What `desired` depends on.
    #[must_use]
    pub fn of(desired: &Desired) -> Self {
        let (tuning, fabric) = (&desired.config.tuning, &desired.config.fabric);
        Self {
            scope: Scope {
                pcie: tuning.acs.is_some() || tuning.max_read_request_bytes.is_some(),
                firewall: fabric.firewall.is_some(),
                users: false,
            },
            network: desired.depth(),
            link: fabric.link_layer,
        }
    }

    /// Functions whose firmware must be asked: physical ones with a port of another link layer. Where all is as asked nothing
    /// is asked of firmware, which takes seconds.
    #[must_use]
    pub fn firmware(&self, machine: &Machine) -> Vec<PciAddress> {
        let wanted = match self.link {
            Some(LinkLayer::InfiniBand) => machine::LinkLayer::InfiniBand,
            Some(LinkLayer::Ethernet) => machine::LinkLayer::Ethernet,
            None => return Vec::new(),
        };
        let differs = |nic: &&machine::Nic| {
            nic.ports
                .iter()
                .any(|port| port.link_layer != Fact::Known(wanted))
        };
        let physical = machine.physical_nics();
        let mut functions: Vec<_> = physical.filter(differs).filter_map(|nic| nic.pci).collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }
}

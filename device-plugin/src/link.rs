//! When a port that goes down or up changes the health of its device. Pure: a function of (state, observation, now).

use std::collections::BTreeMap;
use std::time::Duration;

use topology::fact::Fact;
use topology::machine::PortState;
use topology::node_file::{NodeDevice, NodeNic, NodeResource};

/// What a look at a port, a NIC or a device showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It carries traffic.
    Up,
    /// It does not.
    Down,
    /// Nobody could tell: no evidence for either.
    Unknown,
}

/// What the last look at each port showed, by RDMA device and port number.
pub type Sightings = BTreeMap<(String, u32), Seen>;

/// How long an observation must last before it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Down for this long: the device turns Unhealthy.
    pub hold_down: Duration,
    /// Up for this long: it turns Healthy again.
    pub stable_up: Duration,
}

impl From<&NodeResource> for Patience {
    fn from(resource: &NodeResource) -> Self {
        Self {
            hold_down: Duration::from_secs(resource.hold_down_seconds.into()),
            stable_up: Duration::from_secs(resource.stable_up_seconds.into()),
        }
    }
}

/// The link of one device. It begins [`Link::Up`]: after a boot, ports come up later than the plugin, and a device
/// that is Unhealthy in that moment would make the kubelet refuse the pods that it restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Usable.
    #[default]
    Up,
    /// Usable still; down since then.
    Falling {
        /// First look that showed it down.
        since: Duration,
    },
    /// Unusable.
    Down,
    /// Unusable still; up since then.
    Rising {
        /// First look that showed it up.
        since: Duration,
    },
}

impl Link {
    /// The state after one more look at `now`. A wait starts again after a look that could not tell: only what was
    /// seen throughout counts.
    #[must_use]
    pub fn step(self, seen: Seen, now: Duration, patience: Patience) -> Self {
        match (self, seen) {
            (Self::Up, Seen::Down) => Self::fall(now, now, patience),
            (Self::Falling { since }, Seen::Down) => Self::fall(since, now, patience),
            (Self::Down, Seen::Up) => Self::rise(now, now, patience),
            (Self::Rising { since }, Seen::Up) => Self::rise(since, now, patience),
            (Self::Up | Self::Falling { .. }, Seen::Up | Seen::Unknown) => Self::Up,
            (Self::Down | Self::Rising { .. }, Seen::Down | Seen::Unknown) => Self::Down,
        }
    }

    /// Whether the device has no usable link.
    #[must_use]
    pub fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::Rising { .. })
    }

    fn fall(since: Duration, now: Duration, patience: Patience) -> Self {
        if now.saturating_sub(since) >= patience.hold_down {
            Self::Down
        } else {
            Self::Falling { since }
        }
    }

    fn rise(since: Duration, now: Duration, patience: Patience) -> Self {
        if now.saturating_sub(since) >= patience.stable_up {
            Self::Up
        } else {
            Self::Rising { since }
        }
    }
}

/// What a port's state says. A port without a subnet manager (`INIT`, `ARMED`) carries no traffic.
#[must_use]
pub fn port(state: &Fact<PortState>) -> Seen {
    match state {
        Fact::Known(PortState::Active | PortState::ActiveDefer) => Seen::Up,
        Fact::Known(PortState::Down | PortState::Init | PortState::Armed) => Seen::Down,
        Fact::Absent | Fact::Unreadable(_) => Seen::Unknown,
    }
}

/// A device is down as soon as one of its NICs is: what was promised is the whole pair.
#[must_use]
pub fn device(device: &NodeDevice, sightings: &Sightings) -> Seen {
    let nics: Vec<Seen> = device.nics.iter().map(|n| nic(n, sightings)).collect();
    if nics.contains(&Seen::Down) {
        Seen::Down
    } else if nics.is_empty() || nics.contains(&Seen::Unknown) {
        Seen::Unknown
    } else {
        Seen::Up
    }
}

/// A NIC is up as long as one of its watched ports is: the second port of a card is often not cabled.
#[must_use]
pub fn nic(nic: &NodeNic, sightings: &Sightings) -> Seen {
    let look = |port: &u32| {
        sightings
            .get(&(nic.rdma.clone(), *port))
            .copied()
            .unwrap_or(Seen::Unknown)
    };
    let ports: Vec<Seen> = nic.ports.iter().map(look).collect();
    if ports.contains(&Seen::Up) {
        Seen::Up
    } else if ports.is_empty() || ports.contains(&Seen::Unknown) {
        Seen::Unknown
    } else {
        Seen::Down
    }
}

#[cfg(test)]
mod tests;

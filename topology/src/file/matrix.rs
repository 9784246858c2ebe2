//! The matrix that `nvidia-smi topo -m` printed.

use super::{FileError, raw};
use crate::distance::{Cells, Distance, DistanceSource, StatedDistances};
use crate::machine::Machine;

#[derive(Clone, Copy)]
enum Device {
    Gpu(usize),
    Nic(usize),
}

enum Cell {
    NotShown,
    Itself,
    NvLinks(u32),
    Distance(Distance),
}

/// Adds the matrix's distances and `NVLink` counts to the machine.
pub(super) fn apply(matrix: &raw::Matrix, machine: &mut Machine) -> Result<(), FileError> {
    let columns: Vec<Device> = matrix
        .order
        .iter()
        .map(|name| device(machine, name, "matrix.order"))
        .collect::<Result<_, _>>()?;
    let mut stated = StatedDistances {
        source: DistanceSource::Matrix,
        cells: Cells::new(),
        gpu_cells: Cells::new(),
        nic_cells: Cells::new(),
    };
    for (name, cells) in &matrix.rows {
        let field = format!("matrix.rows.{name}");
        if cells.len() != columns.len() {
            let remedy = format!(
                "one cell for each of the {} columns in matrix.order",
                columns.len()
            );
            return Err(FileError::value(
                field,
                format!("{} cells", cells.len()),
                &remedy,
            ));
        }
        let row = device(machine, name, &field)?;
        for (column, text) in columns.iter().zip(cells) {
            enter(
                machine,
                &mut stated,
                row,
                *column,
                &cell(text.as_deref(), &field)?,
            );
        }
    }
    if machine.stated.is_none() {
        machine.stated = Some(stated);
    }
    Ok(())
}

/// `GPU0`, `NIC0` or an RDMA device's name.
fn device(machine: &Machine, name: &str, field: &str) -> Result<Device, FileError> {
    let number = |prefix: &str| {
        name.strip_prefix(prefix)
            .and_then(|rest| rest.parse::<usize>().ok())
    };
    let gpu = number("GPU").filter(|index| machine.gpus.iter().any(|gpu| gpu.index == *index));
    let nic = machine
        .nics
        .iter()
        .find(|nic| Some(nic.index) == number("NIC") || nic.rdma.as_deref() == Some(name));
    let found = gpu
        .map(Device::Gpu)
        .or_else(|| nic.map(|nic| Device::Nic(nic.index)));
    found.ok_or_else(|| {
        FileError::value(
            field,
            name,
            "GPU<index>, NIC<index> or the name of a device in the lists",
        )
    })
}

fn cell(text: Option<&str>, field: &str) -> Result<Cell, FileError> {
    let Some(text) = text else {
        return Ok(Cell::NotShown);
    };
    if text == "X" {
        return Ok(Cell::Itself);
    }
    match text.strip_prefix("NV").map(str::parse) {
        Some(Ok(links)) => Ok(Cell::NvLinks(links)),
        Some(Err(_)) => Err(FileError::value(
            field,
            text,
            "NV and the number of links, as in NV18",
        )),
        None => distance(text, field).map(Cell::Distance),
    }
}

pub(super) fn distance(text: &str, field: &str) -> Result<Distance, FileError> {
    match text {
        "PIX" => Ok(Distance::Pix),
        "PXB" => Ok(Distance::Pxb),
        "PHB" => Ok(Distance::Phb),
        "NODE" => Ok(Distance::Node),
        "SYS" => Ok(Distance::Sys),
        _ => Err(FileError::value(
            field,
            text,
            "PIX, PXB, PHB, NODE, SYS, X or NV<links>",
        )),
    }
}

fn enter(
    machine: &mut Machine,
    stated: &mut StatedDistances,
    row: Device,
    column: Device,
    cell: &Cell,
) {
    match (row, column, cell) {
        (Device::Gpu(a), Device::Gpu(b), Cell::NvLinks(links)) => {
            if let Some(gpu) = machine.gpus.iter_mut().find(|gpu| gpu.index == a) {
                gpu.nvlinks.insert(b, *links);
            }
        }
        (Device::Gpu(a), Device::Gpu(b), Cell::Distance(distance)) => {
            insert(&mut stated.gpu_cells, a, b, *distance);
        }
        (Device::Nic(a), Device::Nic(b), Cell::Distance(distance)) => {
            insert(&mut stated.nic_cells, a, b, *distance);
        }
        (Device::Gpu(gpu), Device::Nic(nic), Cell::Distance(distance))
        | (Device::Nic(nic), Device::Gpu(gpu), Cell::Distance(distance)) => {
            insert(&mut stated.cells, gpu, nic, *distance);
        }
        (_, _, Cell::NotShown | Cell::Itself | Cell::NvLinks(_)) => {}
    }
}

fn insert(cells: &mut Cells, a: usize, b: usize, distance: Distance) {
    cells.entry(a).or_default().insert(b, distance);
}

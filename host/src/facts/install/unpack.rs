//! Module files in the compressions that the kernel's build knows (`scripts/Makefile.modinst`): gzip, xz, zstd. Pure but for
//! the reader that it is given; called by [`super::elf`]. What a file may take is bounded, whatever its header says: the
//! length that comes out by [`LIMIT`], and by the same what a decoder keeps to look back into.

use std::io::Read;

use flate2::read::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

/// Largest module that is unpacked; nvidia.ko has 60 MiB and more.
pub(super) const LIMIT: u64 = 128 << 20;

/// What `packed` holds, by the ending of its name; at most `limit` bytes.
pub(super) fn unpack(packed: impl Read, ending: &str, limit: u64) -> Result<Vec<u8>, String> {
    match ending {
        "gz" => bounded(GzDecoder::new(packed), limit),
        "xz" => {
            let kibibytes = u32::try_from(LIMIT >> 10).unwrap_or(u32::MAX);
            bounded(XzReader::new_mem_limit(packed, true, kibibytes), limit)
        }
        "zst" => {
            let decoder = StreamingDecoder::new_with_max_window_size(packed, LIMIT);
            bounded(decoder.map_err(|error| error.to_string())?, limit)
        }
        _ => Err("it is compressed in a way that this program does not unpack".to_owned()),
    }
}

fn bounded(unpacked: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // One more than may be, to tell the end from the limit.
    let read = unpacked.take(limit + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| error.to_string())?;
    if u64::try_from(length).is_ok_and(|length| length <= limit) {
        Ok(bytes)
    } else {
        Err(format!("it unpacks to more than {limit} bytes"))
    }
}

#[cfg(test)]
mod tests;

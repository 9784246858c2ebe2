//! Module files as the kernel's loader sees them: ELF, with `.modinfo`, `__versions` and the checksums of exported
//! symbols (kernel `scripts/mod/modpost.c`, `include/linux/export-internal.h`). Reads the parts that are needed.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SymbolSection};
use topology::fact::Fact;

use super::modules::ModuleInfo;
use super::unpack::{LIMIT, unpack};
use crate::facts::driver::PEER_MEMORY;
use crate::root::{Root, fact};

/// Largest section that is read.
const SECTION_LIMIT: u64 = 4 << 20;
/// Size of `struct modversion_info` on 64-bit machines: a checksum, then the name.
const VERSION_ENTRY: usize = 64;
/// Where the name stands in it.
const VERSION_NAME: usize = 8;

/// What the module file at `path` says of itself.
pub(super) fn info(root: &Root, path: &str) -> Fact<ModuleInfo> {
    let file = match fact(root.open(path)) {
        Fact::Known(file) => file,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    };
    let read = match path.rsplit_once('.') {
        Some((_, "ko")) => parse(&ReadCache::new(file)),
        Some((_, ending)) => unpack(file, ending, LIMIT).and_then(|bytes| parse(bytes.as_slice())),
        None => Err("its name has no ending".to_owned()),
    };
    read.map_or_else(
        |why| Fact::Unreadable(format!("read {path}: {why}")),
        Fact::Known,
    )
}

fn parse<'a, R: ReadRef<'a>>(data: R) -> Result<ModuleInfo, String> {
    let elf = ElfFile64::<Endianness, R>::parse(data).map_err(|error| error.to_string())?;
    let modinfo = section(&elf, ".modinfo")?.ok_or("it has no .modinfo")?;
    let value = |key: &str| Fact::from(field(modinfo, key));
    Ok(ModuleInfo {
        version: value("version"),
        source_version: value("srcversion"),
        vermagic: value("vermagic"),
        peer_memory_export: offered(&elf),
        peer_memory_import: needed(&elf),
    })
}

/// A section's bytes; `None` where there is no such section.
fn section<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, Endianness, R>,
    name: &str,
) -> Result<Option<&'a [u8]>, String> {
    let Some(section) = elf.section_by_name(name) else {
        return Ok(None);
    };
    if section.size() > SECTION_LIMIT {
        return Err(format!("its {name} is longer than {SECTION_LIMIT} bytes"));
    }
    section.data().map(Some).map_err(|error| error.to_string())
}

/// `key=value`, each ended by a zero byte.
fn field(modinfo: &[u8], key: &str) -> Option<String> {
    let mut entries = modinfo.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| {
        entry
            .strip_prefix(key.as_bytes())?
            .strip_prefix(b"=".as_slice())
    })?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The checksum of the symbol that a module offers: the value of an absolute symbol or, since Linux 5.19, four bytes in a
/// section.
fn offered<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Fact<u32> {
    let name = format!("__crc_{PEER_MEMORY}");
    let mut symbols = elf.symbols();
    let Some(symbol) = symbols.find(|symbol| symbol.name() == Ok(name.as_str())) else {
        return Fact::Absent;
    };
    let unreadable = |what: &str| Fact::Unreadable(format!("{name}: {what}"));
    match symbol.section() {
        SymbolSection::Absolute => u32::try_from(symbol.address())
            .map_or_else(|_| unreadable("longer than 32 bits"), Fact::Known),
        SymbolSection::Section(index) => {
            let bytes = elf
                .section_by_index(index)
                .and_then(|section| section.data_range(symbol.address(), 4))
                .ok()
                .flatten()
                .and_then(|bytes| bytes.try_into().ok());
            bytes.map_or_else(
                || unreadable("outside of its section"),
                |bytes| Fact::Known(word(elf, bytes)),
            )
        }
        _ => unreadable("in no section"),
    }
}

/// The checksum of the symbol that a module was built against.
fn needed<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Fact<u32> {
    let mut symbols = elf.symbols();
    if !symbols.any(|symbol| symbol.is_undefined() && symbol.name() == Ok(PEER_MEMORY)) {
        return Fact::Absent;
    }
    let versions = match section(elf, "__versions") {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            return Fact::Unreadable("it has no __versions: nothing checks its symbols".to_owned());
        }
        Err(why) => return Fact::Unreadable(why),
    };
    let wanted = |entry: &&[u8]| {
        let name = entry.get(VERSION_NAME..).unwrap_or_default();
        name.split(|byte| *byte == 0).next() == Some(PEER_MEMORY.as_bytes())
    };
    let checksum = versions
        .chunks_exact(VERSION_ENTRY)
        .find(wanted)
        .and_then(|entry| entry.get(..4)?.try_into().ok());
    checksum.map_or_else(
        || Fact::Unreadable(format!("__versions does not name {PEER_MEMORY}")),
        |bytes| Fact::Known(word(elf, bytes)),
    )
}

fn word<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>, bytes: [u8; 4]) -> u32 {
    if elf.is_little_endian() {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    }
}

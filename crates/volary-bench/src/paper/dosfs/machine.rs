//! The paper's machines: what their processors take. Times are in microseconds.

use volary_sim::Preset;

/// A machine and its kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) disk: Preset,
    /// Bytes of the buffer cache.
    pub(super) cache: u64,
    /// A call that reads or writes, a buffer in it, and a KiB that is read and written.
    pub(super) call: [f64; 2],
    pub(super) buffer: f64,
    pub(super) kib: [f64; 2],
    /// An open, and each component of a path; and what a component costs that the name cache does not have.
    pub(super) open: f64,
    pub(super) component: f64,
    pub(super) search: f64,
    /// Making a node, and removing it.
    pub(super) make: f64,
    pub(super) remove: f64,
    /// A request: from its end to the beginning of the next, and what it costs.
    pub(super) request: f64,
    /// Bytes a microsecond between the driver and the buffers.
    pub(super) memory: f64,
    /// A cluster or block that is taken.
    pub(super) taken: f64,
    /// Whether a buffer that is needed for something else is waited for until it is written, and large requests are not read
    /// ahead: Mach 3.0's server.
    pub(super) is_server: bool,
}

/// Times of a call of the paper's tests: 1 KB and 16 KB (`rates` in MB/s), as a line through both. Returns what the call and its
/// buffer take, and a KiB.
const fn line(rates: [f64; 2]) -> [f64; 2] {
    let [short, long] = [1024.0 / rates[0], 16_384.0 / rates[1]];
    let kib = (long - short) / 15.0;
    [short - kib, kib]
}

/// Returns what a buffer takes: FFS has three more than DosFs in 16 KB.
const fn buffer(ffs: f64, dosfs: f64) -> f64 {
    (16_384.0 / ffs - 16_384.0 / dosfs) / 3.0
}

const READ: [f64; 2] = line([1.1, 3.3]);
const WRITE: [f64; 2] = line([1.3, 7.4]);
const BUFFER: f64 = buffer(3.0, 3.3);

/// The Gateway with Mach 3.0 and its UNIX server.
pub(super) const GATEWAY: Machine = Machine {
    name: "Gateway, Mach 3.0",
    disk: Preset::MAXTOR400,
    cache: 1_300_000,
    call: [READ[0] - BUFFER, WRITE[0] - BUFFER],
    buffer: BUFFER,
    kib: [READ[1], WRITE[1]],
    open: 715.0,
    component: 35.0,
    search: 5.0,
    make: 1_500.0,
    remove: 1_500.0,
    request: 1_100.0,
    memory: 10.0,
    taken: 200.0,
    is_server: true,
};

/// The Gateway with Mach 2.5.
pub(super) const GATEWAY25: Machine = Machine {
    name: "Gateway, Mach 2.5",
    call: [200.0, 200.0],
    buffer: buffer(14.6, 21.0),
    kib: [
        (16_384.0 / 21.0 - 200.0 - buffer(14.6, 21.0)) / 16.0,
        (16_384.0 / 19.3 - 200.0 - buffer(14.6, 21.0)) / 16.0,
    ],
    request: 400.0,
    memory: 20.0,
    is_server: false,
    ..GATEWAY
};

const DEC_READ: [f64; 2] = [1024.0 / 5.1, (8192.0 / 17.5 - 1024.0 / 5.1) / 7.0];
const DEC_WRITE: [f64; 2] = [1024.0 / 4.5, (8192.0 / 17.1 - 1024.0 / 4.5) / 7.0];
const DEC_BUFFER: f64 = 20.0;

/// The DECstation with Mach 2.5.
pub(super) const DECSTATION: Machine = Machine {
    name: "DECstation, Mach 2.5",
    disk: Preset::C2247,
    cache: 1_600_000,
    call: [
        DEC_READ[0] - DEC_READ[1] - DEC_BUFFER,
        DEC_WRITE[0] - DEC_WRITE[1] - DEC_BUFFER,
    ],
    buffer: DEC_BUFFER,
    kib: [DEC_READ[1], DEC_WRITE[1]],
    open: 190.0,
    component: 40.0,
    search: 5.0,
    make: 1_500.0,
    remove: 1_500.0,
    request: 400.0,
    memory: 29.0,
    taken: 50.0,
    is_server: false,
};

/// The machines of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machines {
    pub(super) gateway: Machine,
    pub(super) gateway25: Machine,
    pub(super) decstation: Machine,
    /// The Gateway with a floppy disk; `None` if another disk takes the place of the paper's.
    pub(super) floppy: Option<Machine>,
}

impl Machines {
    /// Returns the paper's machines, all with `disk` in place of their own if it is given.
    pub(super) fn new(disk: Option<Preset>) -> Self {
        let on = |machine: Machine| Machine {
            disk: disk.unwrap_or(machine.disk),
            ..machine
        };
        let floppy = Machine {
            disk: Preset::FLOPPY,
            ..GATEWAY
        };
        Self {
            gateway: on(GATEWAY),
            gateway25: on(GATEWAY25),
            decstation: on(DECSTATION),
            floppy: disk.is_none().then_some(floppy),
        }
    }
}

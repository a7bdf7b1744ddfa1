# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""BPF for tests: objects loaded with libbpf, the bpf() system call for what is left, and a network namespace."""
import ctypes
import errno
import mmap
import os
import platform
import struct
from contextlib import contextmanager

XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT = range(5)

_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_MAP_LOOKUP, _MAP_UPDATE, _MAP_DELETE, _OBJ_GET, _TEST_RUN, _OBJ_INFO = 1, 2, 3, 7, 10, 15
_SMALL_METADATA = 32
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _bpf(command, attr, what):
    attr = ctypes.create_string_buffer(attr, max(len(attr), 128))
    result = _check(_libc.syscall(_SYSCALL, command, attr, len(attr)), what)
    return result, attr.raw


def _address(buffer):
    return ctypes.addressof(buffer)


def obj_get(path):
    name = ctypes.create_string_buffer(os.fsencode(path))
    return _bpf(_OBJ_GET, struct.pack("<QII", _address(name), 0, 0), f"BPF_OBJ_GET {path}")[0]


def map_lookup(fd, key, value_size):
    key, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value_size)
    _bpf(_MAP_LOOKUP, struct.pack("<IIQQQ", fd, 0, _address(key), _address(value), 0), "BPF_MAP_LOOKUP_ELEM")
    return value.raw


def map_update(fd, key, value):
    key, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value, len(value))
    _bpf(_MAP_UPDATE, struct.pack("<IIQQQ", fd, 0, _address(key), _address(value), 0), "BPF_MAP_UPDATE_ELEM")


def map_delete(fd, key):
    key = ctypes.create_string_buffer(key, len(key))
    _bpf(_MAP_DELETE, struct.pack("<IIQQ", fd, 0, _address(key), 0), "BPF_MAP_DELETE_ELEM")


def possible_cpus():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as f:
        return int(f.read().strip().split("-")[-1]) + 1


def map_lookup_percpu(fd, index, words):
    """Sums over CPUs of the u64 words of an element of a per-CPU array."""
    cpus = possible_cpus()
    values = struct.unpack(f"<{words * cpus}Q", map_lookup(fd, struct.pack("<I", index), words * 8 * cpus))
    return [sum(values[i::words]) for i in range(words)]


def test_run(fd, frame, ifindex=0, poison=0):
    """
    Runs an XDP program on a frame as if it came from an interface; (action, frame afterwards). The kernel's test runs
    start with zeros in front of the frame: `poison` bytes of 0xa5 take their place, as XDP metadata, of which older
    kernels allow less.
    """
    try:
        return _test_run(fd, frame, ifindex, poison)
    except OSError as e:
        if e.errno != errno.EINVAL or poison <= _SMALL_METADATA:
            raise
        return _test_run(fd, frame, ifindex, _SMALL_METADATA)


def _test_run(fd, frame, ifindex, poison):
    data = ctypes.create_string_buffer(b"\xa5" * poison + frame, poison + len(frame))
    out = ctypes.create_string_buffer(len(data) + 256)
    context = ctypes.create_string_buffer(struct.pack("<6I", poison, len(data), 0, ifindex, 0, 0), 24)
    context_out = ctypes.create_string_buffer(24)
    attr = struct.pack("<IIIIQQIIIIQQ", fd, 0, len(data), len(out), _address(data), _address(out), 1, 0, 24, 24,
                       _address(context), _address(context_out))
    attr = _bpf(_TEST_RUN, attr, "BPF_PROG_TEST_RUN")[1]
    action, size = struct.unpack_from("<4xI4xI", attr)
    return action, out.raw[struct.unpack_from("<I", context_out.raw)[0]:size]


def verified_instructions(fd):
    """How many instructions of a program the verifier looked at, one counted as often as it did."""
    info = ctypes.create_string_buffer(232)  # struct bpf_prog_info
    _bpf(_OBJ_INFO, struct.pack("<IIQ", fd, len(info), _address(info)), "BPF_OBJ_GET_INFO_BY_FD")
    return struct.unpack_from("<I", info, 216)[0]


class Object:
    """A BPF object file, loaded: what a skeleton is to C. Maps' sizes, by name, and .rodata are set before."""

    def __init__(self, path, value_sizes=(), max_entries=(), rodata=b""):
        self._lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
        for name in ("bpf_object__open_file", "bpf_object__find_map_by_name", "bpf_object__find_program_by_name",
                     "bpf_map__initial_value"):
            getattr(self._lib, name).restype = ctypes.c_void_p
        self._lib.libbpf_set_print(None)
        self._object = ctypes.c_void_p(self._lib.bpf_object__open_file(os.fsencode(path), None))
        if not self._object:
            raise OSError(ctypes.get_errno(), f"cannot open {path}")
        for name, size in dict(value_sizes).items():
            assert self._lib.bpf_map__set_value_size(self._map(name), size) == 0
        for name, count in dict(max_entries).items():
            assert self._lib.bpf_map__set_max_entries(self._map(name), count) == 0
        if rodata:
            size = ctypes.c_size_t()
            at = self._lib.bpf_map__initial_value(self._map(".rodata"), ctypes.byref(size))
            assert at and size.value >= len(rodata)
            ctypes.memmove(at, rodata, len(rodata))
        if self._lib.bpf_object__load(self._object):
            raise OSError(ctypes.get_errno(), f"cannot load {path}")
        self._mapped = {}

    def _map(self, name):
        found = self._lib.bpf_object__find_map_by_name(self._object, name.encode())
        assert found, f"no map {name}"
        return ctypes.c_void_p(found)

    def map(self, name):
        return self._lib.bpf_map__fd(self._map(name))

    def program(self, name):
        found = self._lib.bpf_object__find_program_by_name(self._object, name.encode())
        assert found, f"no program {name}"
        return self._lib.bpf_program__fd(ctypes.c_void_p(found))

    def mapped(self, name, size):
        """The memory of a BPF_F_MMAPABLE array."""
        if name not in self._mapped:
            self._mapped[name] = mmap.mmap(self.map(name), -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        return self._mapped[name]

    def close(self):
        for memory in self._mapped.values():
            memory.close()
        self._lib.bpf_object__close(self._object)


@contextmanager
def one_cpu():
    """Test runs stay on one CPU, and so with its part of per-CPU maps."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def network_namespace():
    """A new network namespace for this thread, and for the processes that it starts."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.unshare(_CLONE_NEWNET), "unshare")
        yield
    finally:
        _check(_libc.setns(before, _CLONE_NEWNET), "setns")
        os.close(before)

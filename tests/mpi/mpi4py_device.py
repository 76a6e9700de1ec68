"""Objects of Python's GPU libraries go through mpi4py: what those libraries offer of an array is
where it lies, by __cuda_array_interface__ (CuPy, Numba, PyTorch) or by DLPack. These are such
objects over memory of cuMemAlloc, as far as mpi4py looks at them.

Any number of ranks. The driver's library is the one that the linker finds.
"""

import array
import ctypes

from mpi4py import MPI

cuda = ctypes.CDLL("libcuda.so.1")
Address = ctypes.c_uint64


def check(result):
    if result != 0:
        raise RuntimeError(f"CUDA's error {result}")


def begin():
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))


class DeviceArray:
    """64-bit integers in device memory."""

    def __init__(self, values):
        self.count = len(values)
        self.address = Address()
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(8 * self.count)))
        host = array.array("q", values)
        check(cuda.cuMemcpyHtoD_v2(self.address, ctypes.c_void_p(host.buffer_info()[0]),
                                   ctypes.c_size_t(8 * self.count)))

    def values(self):
        host = array.array("q", bytes(8 * self.count))
        check(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(host.buffer_info()[0]), self.address,
                                   ctypes.c_size_t(8 * self.count)))
        return host.tolist()


class InterfaceArray(DeviceArray):
    @property
    def __cuda_array_interface__(self):
        return {
            "shape": (self.count,),
            "typestr": "<i8",
            "data": (self.address.value, False),
            "version": 3,
            "strides": None,
        }


# ---- DLPack's structures ----


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [
    ("tensor", DLTensor),
    ("context", ctypes.c_void_p),
    ("deleter", Deleter),
]

DL_CUDA = 2
DL_INT = 0
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class DlpackArray(DeviceArray):
    def __init__(self, values):
        super().__init__(values)
        self.shape = (ctypes.c_int64 * 1)(self.count)
        tensor = DLTensor(self.address.value, DL_CUDA, 0, 1, DL_INT, 64, 1, self.shape, None, 0)
        self.managed = DLManagedTensor(tensor, None, Deleter(lambda _: None))

    def __dlpack_device__(self):
        return DL_CUDA, 0

    def __dlpack__(self, stream=None):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def run(kind, count):
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    before = (rank - 1) % size

    def values(of):
        return [of * 1_000_000 + i for i in range(count)]

    own = kind(values(rank))
    other = kind([-1] * count)
    comm.Sendrecv(own, (rank + 1) % size, 0, other, before, 0)
    assert other.values() == values(before), "Sendrecv"

    requests = [comm.Irecv(other, before), comm.Isend(own, (rank + 1) % size)]
    MPI.Request.Waitall(requests)
    assert other.values() == values(before), "Isend"

    comm.Allreduce(own, other, MPI.SUM)
    assert other.values() == [sum(row) for row in zip(*map(values, range(size)))], "Allreduce"

    everything = kind([-1] * (count * size))
    comm.Allgather(own, everything)
    assert everything.values() == [v for of in range(size) for v in values(of)], "Allgather"

    comm.Bcast(own, 0)
    assert own.values() == values(0), "Bcast"

    window = MPI.Win.Create(other, 8, comm=comm)
    window.Fence()
    window.Put(kind(values(rank)), (rank + 1) % size)
    window.Fence()
    assert other.values() == values(before), "Put"
    window.Free()


begin()
for kind in InterfaceArray, DlpackArray:
    for count in 3, 500, 20_000:
        run(kind, count)
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print("arrays on devices were right")

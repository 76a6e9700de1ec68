"""Libraries of Debian that write files together, on the MPI that the job has: h5py over HDF5,
NetCDF-4 over HDF5, PnetCDF. Each writes a file by all ranks, by calls that interleave them, and reads
it again as other ranks than those that wrote it. Prints a line for each that has found its data:
debian_files.py FOLDER LIBRARY...

The last two have no interface for Python: their functions are called as C's.
"""
import ctypes
import os
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def check(condition, what):
    """Ends the job where this is not so: the others would wait for this rank."""
    if not condition:
        print(f"rank {rank}: {what}", file=sys.stderr, flush=True)
        world.Abort(1)


def handle_of(python_object):
    """What C's functions take for it: Open MPI's handles are addresses."""
    return ctypes.c_void_p.from_address(MPI._addressof(python_object))


WORLD, NO_INFO = handle_of(world), handle_of(MPI.INFO_NULL)

# Rows of ranks lie between each other; the columns are odd in number, so that none is aligned.
ROWS, COLUMNS = 24 * size, 1021


def table(dtype):
    return numpy.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(dtype)


# ---- HDF5 --------------------------------------------------------------------------------------

def hdf5(path):
    import h5py
    check(h5py.get_config().mpi, "h5py is the one without MPI")
    doubles, numbers = table("f8"), table("i4")
    neighbour = (rank + 1) % size
    with h5py.File(path, "w", driver="mpio", comm=world) as file:
        rows = file.create_dataset("rows", doubles.shape, dtype="f8")
        alone = file.create_dataset("alone", doubles.shape, dtype="f8")
        chunks = file.create_dataset("chunks", numbers.shape, dtype="i4", chunks=(7, 100))
        packed = file.create_dataset("packed", numbers.shape, dtype="i4", chunks=(24, COLUMNS),
                                     compression="gzip", shuffle=True)
        with rows.collective:
            rows[rank::size, :] = doubles[rank::size, :]
        alone[rank::size, :] = doubles[rank::size, :]
        with chunks.collective:
            chunks[:, rank::size] = numbers[:, rank::size]
        with packed.collective:  # chunks that several ranks write travel to one of them
            packed[rank::size, :] = numbers[rank::size, :]
        file.attrs["ranks"] = size
    with h5py.File(path, "r+", driver="mpio", comm=world) as file:
        check(file.attrs["ranks"] == size, "the attribute is another")
        for name, expected in (("rows", doubles), ("alone", doubles), ("chunks", numbers),
                               ("packed", numbers)):
            dataset = file[name]
            with dataset.collective:
                found = dataset[neighbour::size, :]
            check((found == expected[neighbour::size, :]).all(), f"{name}, read together")
            check((dataset[:, neighbour::size] == expected[:, neighbour::size]).all(),
                  f"{name}, read alone")
        file.atomic = True  # HDF5 hands this to MPI_File_set_atomicity
        check(file.atomic, "atomic mode is not on")
        file["rows"][rank, :] = -doubles[rank, :]
    # HDF5 reads the file by itself, without MPI, and its own checksums and structure must hold.
    if rank == 0:
        with h5py.File(path, "r") as file:
            check((file["rows"][:size, :] == -doubles[:size, :]).all(), "rows, written again")
            check((file["rows"][size:, :] == doubles[size:, :]).all(), "rows, without MPI")
            check((file["packed"][()] == numbers).all(), "packed, without MPI")


# ---- NetCDF-4 and PnetCDF ----------------------------------------------------------------------

NC_CLOBBER, NC_NETCDF4, NC_NOWRITE, NC_64BIT_DATA = 0, 0x1000, 0, 0x20
NC_DOUBLE, NC_INDEPENDENT, NC_COLLECTIVE = 6, 0, 1


def sizes(*numbers):
    return (ctypes.c_size_t * len(numbers))(*numbers)


class Calls:
    """Functions of a library that return 0, or a number whose text `describe` knows."""

    def __init__(self, library, describe):
        self.library = ctypes.CDLL(library)
        self.describe = getattr(self.library, describe)
        self.describe.restype = ctypes.c_char_p

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            code = function(*arguments)
            check(code == 0, f"{name}: {self.describe(code).decode() if code else ''}")
        return call


def every_nth_row(data, first):
    """A copy of what the rank writes, and where: start, count, stride."""
    part = numpy.ascontiguousarray(data[first::size, :])
    return part, sizes(first, 0), sizes(*part.shape), sizes(size, 1)


def netcdf(path):
    nc = Calls("libnetcdf_mpi.so.19", "nc_strerror")
    data = table("f8")
    number, rows, columns, variable = (ctypes.c_int() for _ in range(4))
    nc.nc_create_par(path, NC_CLOBBER | NC_NETCDF4, WORLD, NO_INFO,
                     ctypes.byref(number))
    nc.nc_def_dim(number, b"row", ctypes.c_size_t(ROWS), ctypes.byref(rows))
    nc.nc_def_dim(number, b"column", ctypes.c_size_t(COLUMNS), ctypes.byref(columns))
    nc.nc_def_var(number, b"table", NC_DOUBLE, 2, (ctypes.c_int * 2)(rows, columns),
                  ctypes.byref(variable))
    nc.nc_enddef(number)
    nc.nc_var_par_access(number, variable, NC_COLLECTIVE)
    part, start, count, stride = every_nth_row(data, rank)
    nc.nc_put_vars_double(number, variable, start, count, stride,
                          part.ctypes.data_as(ctypes.c_void_p))
    nc.nc_close(number)
    nc.nc_open_par(path, NC_NOWRITE, WORLD, NO_INFO, ctypes.byref(number))
    nc.nc_inq_varid(number, b"table", ctypes.byref(variable))
    for together in (True, False):
        nc.nc_var_par_access(number, variable, NC_COLLECTIVE if together else NC_INDEPENDENT)
        expected, start, count, stride = every_nth_row(data, (rank + 1) % size)
        found = numpy.zeros_like(expected)
        nc.nc_get_vars_double(number, variable, start, count, stride,
                              found.ctypes.data_as(ctypes.c_void_p))
        check((found == expected).all(), f"NetCDF's table, together: {together}")
    nc.nc_close(number)


def pnetcdf(path):
    nc = Calls("libpnetcdf.so.0d", "ncmpi_strerror")
    data = table("f8")
    number, rows, columns, variable = (ctypes.c_int() for _ in range(4))
    nc.ncmpi_create(WORLD, path, NC_CLOBBER | NC_64BIT_DATA, NO_INFO,
                    ctypes.byref(number))
    nc.ncmpi_def_dim(number, b"row", ctypes.c_longlong(ROWS), ctypes.byref(rows))
    nc.ncmpi_def_dim(number, b"column", ctypes.c_longlong(COLUMNS), ctypes.byref(columns))
    nc.ncmpi_def_var(number, b"table", NC_DOUBLE, 2, (ctypes.c_int * 2)(rows, columns),
                     ctypes.byref(variable))
    nc.ncmpi_enddef(number)
    # The rank's first row by a call of its own; the others are put off, and one call writes all.
    part, start, count, stride = every_nth_row(data, rank)
    address = part.ctypes.data
    nc.ncmpi_put_vara_double_all(number, variable, sizes(rank, 0), sizes(1, COLUMNS),
                                 ctypes.c_void_p(address))
    for row in range(1, part.shape[0]):
        nc.ncmpi_iput_vara_double(number, variable, sizes(rank + row * size, 0), sizes(1, COLUMNS),
                                  ctypes.c_void_p(address + row * COLUMNS * 8), None)
    nc.ncmpi_wait_all(number, -1, None, None)
    nc.ncmpi_close(number)
    nc.ncmpi_open(WORLD, path, NC_NOWRITE, NO_INFO, ctypes.byref(number))
    nc.ncmpi_inq_varid(number, b"table", ctypes.byref(variable))
    expected, start, count, stride = every_nth_row(data, (rank + 1) % size)
    found = numpy.zeros_like(expected)
    nc.ncmpi_get_vars_double_all(number, variable, start, count, stride,
                                 found.ctypes.data_as(ctypes.c_void_p))
    check((found == expected).all(), "PnetCDF's table, read together")
    nc.ncmpi_begin_indep_data(number)
    found[:] = 0
    nc.ncmpi_get_vars_double(number, variable, start, count, stride,
                             found.ctypes.data_as(ctypes.c_void_p))
    nc.ncmpi_end_indep_data(number)
    check((found == expected).all(), "PnetCDF's table, read alone")
    nc.ncmpi_close(number)


for library in sys.argv[2:]:
    globals()[library](os.path.join(os.fsencode(sys.argv[1]), os.fsencode(library)))
    world.Barrier()
    if rank == 0:
        print(library, "on", "Ferry" if "Ferry" in MPI.Get_library_version() else "another MPI",
              flush=True)

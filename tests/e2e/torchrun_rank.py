# A rank that torchrun has started: it is in a job of Ferry's, through libmpi_abi, and in a process
# group of torch.distributed beside it, whose store has MASTER_PORT.
import ctypes
import sys

import torch.distributed

COMM_WORLD = ctypes.c_void_p(0x101)  # MPI 5.0, appendix A.1.4

mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)


def call(name, *arguments):
    code = getattr(mpi, name)(*arguments)
    if code != 0:
        sys.exit(f"{name} returned {code}")


def number(name):
    result = ctypes.c_int(-1)
    call(name, COMM_WORLD, ctypes.byref(result))
    return result.value


torch.distributed.init_process_group("gloo")
call("MPI_Init", None, None)
rank, size = number("MPI_Comm_rank"), number("MPI_Comm_size")
if rank != torch.distributed.get_rank() or size != torch.distributed.get_world_size():
    sys.exit(f"MPI says rank {rank} of {size}, torch.distributed another")
call("MPI_Barrier", COMM_WORLD)
torch.distributed.barrier()
call("MPI_Finalize")
torch.distributed.destroy_process_group()
sys.stdout.write(f"python rank {rank} of {size}\n")

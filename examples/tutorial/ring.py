"""Every rank adds its number to a sum that goes round in a ring, and rank 0 says what it is.

    ferryrun -n 4 python3 ring.py
"""
from mpi4py import MPI

ranks = MPI.COMM_WORLD
rank, size = ranks.Get_rank(), ranks.Get_size()

total = rank if rank == 0 else rank + ranks.recv(source=rank - 1)
print(f"rank {rank} has {total}")
if size > 1:
    ranks.send(total, dest=(rank + 1) % size)
if rank == 0:
    total = ranks.recv(source=size - 1) if size > 1 else total
    print(f"the sum of all ranks is {total}")

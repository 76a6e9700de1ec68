! A tool in Fortran over mpi_f08: it takes MPI_Isend and MPI_Barrier, counts, and calls PMPI_x. A
! section that a program passes goes through it as it is.
module tool_counts
  implicit none
  integer :: sends = 0, barriers = 0
end module

subroutine MPI_Isend_f08ts(buf, count, datatype, dest, tag, comm, request, ierror)
  use mpi_f08, only: MPI_Datatype, MPI_Comm, MPI_Request, PMPI_Isend
  use tool_counts
  implicit none
  type(*), dimension(..), intent(in), asynchronous :: buf
  integer, intent(in) :: count, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  type(MPI_Request), intent(out) :: request
  integer, optional, intent(out) :: ierror
  sends = sends + 1
  call PMPI_Isend(buf, count, datatype, dest, tag, comm, request, ierror)
end subroutine

subroutine MPI_Barrier_f08(comm, ierror)
  use mpi_f08, only: MPI_Comm, PMPI_Barrier
  use tool_counts
  implicit none
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  barriers = barriers + 1
  call PMPI_Barrier(comm, ierror)
end subroutine

program with_tool
  use mpi_f08
  use tool_counts
  use checks
  implicit none
  integer :: rank, ierr
  integer, asynchronous :: a(3, 4), b(4)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  a = 0
  a(2, :) = [5, 6, 7, 8] + rank
  call MPI_Isend(a(2, 4:1:-1), 4, MPI_INTEGER, 1 - rank, 0, MPI_COMM_WORLD, request)
  call MPI_Recv(b, 4, MPI_INTEGER, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(b == [8, 7, 6, 5] + 1 - rank) .and. ierr == MPI_SUCCESS, 'a section past a tool')
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call check(sends == 1 .and. barriers == 2, 'a tool that counts')
  call report(rank)
  call MPI_Finalize()
end program

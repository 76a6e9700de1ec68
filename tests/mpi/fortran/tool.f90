! A tool in Fortran: it takes MPI_Send, counts, and calls PMPI_Send.
subroutine MPI_Send(buf, count, datatype, dest, tag, comm, ierror)
  implicit none
  integer :: buf(*), count, datatype, dest, tag, comm, ierror
  integer :: sends
  common /tool_sends/ sends
  sends = sends + 1
  call PMPI_Send(buf, count, datatype, dest, tag, comm, ierror)
end subroutine

program with_tool
  use mpi, only: MPI_INTEGER, MPI_COMM_WORLD, MPI_STATUS_IGNORE, MPI_COMM_NULL, MPI_Comm, &
                 MPI_Status, MPI_Status_f2f08, MPI_Status_f082f, MPI_Sizeof, MPI_STATUS_SIZE, &
                 operator(==), operator(/=), MPI_Init, MPI_Finalize, MPI_Comm_rank, MPI_Recv, &
                 PMPI_Comm_size
  use checks
  implicit none
  external :: MPI_Send
  integer :: sends
  common /tool_sends/ sends
  integer :: ierr, rank, size, value, status(MPI_STATUS_SIZE), back(MPI_STATUS_SIZE)
  type(MPI_Comm) :: one, two
  type(MPI_Status) :: typed
  real(8) :: array(3)
  character(5) :: text
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call PMPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  value = 5
  if (rank == 0) then
    call MPI_Send([5], 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierr)
    call check(sends == 1, 'a tool''s MPI_Send')
  else
    value = 0
    call MPI_Recv(value, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end if
  call check(value == 5 .and. size == 2, 'a message past a tool')
  one%MPI_VAL = MPI_COMM_WORLD
  two%MPI_VAL = MPI_COMM_NULL
  call check(one /= two .and. .not. one == two .and. one == one, 'handles of types')
  status = [1, 2, 3, 4, 5, 6, 7, 8]
  call MPI_Status_f2f08(status, typed, ierr)
  call MPI_Status_f082f(typed, back)
  call check(typed%MPI_SOURCE == 1 .and. typed%MPI_TAG == 2 .and. all(back == status), 'statuses')
  call MPI_Sizeof(array, size, ierr)
  call check(size == 8, 'MPI_Sizeof of an array')
  call MPI_Sizeof(text, size, ierr)
  call check(size == 5, 'MPI_Sizeof of a CHARACTER')
  call MPI_Sizeof((1.0, 2.0), size, ierr)
  call check(size == 8, 'MPI_Sizeof of a COMPLEX')
  call report(rank)
  call MPI_Finalize(ierr)
end program

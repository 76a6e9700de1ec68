! A program in Fortran that is compiled with Open MPI's mpif.h: where its interface differs from the
! standard's. Handles are small numbers, statuses have six, constants are common blocks of their own.
module of_the_program
  implicit none
  include 'mpif.h'
  integer :: rank, size, handled = 0, copies = 0, deletes = 0
  character(len=40) :: step = 'the beginning'
contains
  subroutine check(condition)
    logical, intent(in) :: condition
    integer :: error
    if (.not. condition) then
      write (*, *) 'rank', rank, ': wrong: ', trim(step)
      call MPI_Abort(MPI_COMM_WORLD, 1, error)
    end if
  end subroutine

  subroutine add_both(in, inout, length, datatype)
    integer :: in(*), inout(*), length, datatype
    call check(datatype == MPI_INTEGER)
    inout(1:length) = inout(1:length) + in(1:length)
  end subroutine

  subroutine on_error(comm, code)
    integer :: comm, code
    call check(comm == MPI_COMM_SELF)
    handled = code
  end subroutine

  subroutine copy(comm, keyval, extra, value_in, value_out, flag, error)
    integer :: comm, keyval, error
    integer(MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    call check(comm == MPI_COMM_SELF .and. keyval /= MPI_KEYVAL_INVALID)
    copies = copies + 1
    value_out = value_in + extra
    flag = .true.
    error = MPI_SUCCESS
  end subroutine

  subroutine remove(comm, keyval, value, extra, error)
    integer :: comm, keyval, error
    integer(MPI_ADDRESS_KIND) :: value, extra
    call check(comm /= MPI_COMM_NULL .and. keyval /= MPI_KEYVAL_INVALID .and. extra == 5)
    deletes = deletes + int(value)
    error = MPI_SUCCESS
  end subroutine
end module

program openmpi
  use of_the_program
  implicit none
  integer :: error, next, before, total, count, length, op, handler, other, keyval, type, group
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2), requests(2), places(2)
  integer :: lengths(2), types(2), index, extent, values(4), got(4), place
  integer(MPI_ADDRESS_KIND) :: value, extra
  double precision :: out(4), in(4)
  logical :: flag, periods(1), remains(1)
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=12) :: held

  call MPI_Init(error)
  call check(error == MPI_SUCCESS)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)

  step = 'the version'
  call MPI_Get_library_version(version, length, error)
  call check(version(1:15) == 'Open MPI v4.1.4' .and. index_of_ferry(version(1:length)) > 0)

  step = 'requests and statuses'
  out = rank
  call MPI_Irecv(in, 4, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &
                 requests(1), error)
  call MPI_Isend(out, 3, MPI_DOUBLE_PRECISION, next, 7, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, statuses, error)
  call MPI_Get_count(statuses(1, 1), MPI_DOUBLE_PRECISION, count, error)
  call check(all(requests == MPI_REQUEST_NULL) .and. count == 3 .and. nint(in(3)) == before)
  call check(statuses(MPI_SOURCE, 1) == before .and. statuses(MPI_TAG, 1) == 7)
  call MPI_Waitany(2, requests, index, status, error)
  call check(index == MPI_UNDEFINED)
  call MPI_Recv(in, 1, MPI_REAL8, MPI_PROC_NULL, 1, MPI_COMM_WORLD, status, error)
  call check(status(MPI_SOURCE) == MPI_PROC_NULL .and. status(MPI_TAG) == MPI_ANY_TAG)
  call MPI_Recv(in, 1, MPI_REAL8, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call check(error == MPI_SUCCESS)

  step = 'collectives'
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(total == size * (size - 1) / 2)
  values = rank
  call MPI_Allreduce(MPI_IN_PLACE, values, 4, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
  call check(all(values == size - 1))
  call MPI_Op_create(add_both, .true., op, error)
  values = 1
  call MPI_Allreduce(values, got, 4, MPI_INTEGER, op, MPI_COMM_WORLD, error)
  call check(all(got == size))
  call MPI_Op_free(op, error)
  call check(op == MPI_OP_NULL)

  step = 'datatypes'
  values = (/ 1, 2, 3, 4 /)
  lengths = 1
  places = (/ 0, 8 /)
  types = MPI_INTEGER
  call MPI_Type_struct(2, lengths, places, types, type, error)
  call MPI_Type_commit(type, error)
  call MPI_Type_extent(type, extent, error)
  call check(extent == 12)
  got = 0
  call MPI_Sendrecv(values, 1, type, rank, 3, got, 4, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, &
                    status, error)
  call check(got(1) == 1 .and. got(2) == 3 .and. got(3) == 0)
  call MPI_Type_free(type, error)
  call check(type == MPI_DATATYPE_NULL)
  call MPI_Type_size(MPI_2DOUBLE_PRECISION, length, error)
  call check(length == 16)

  step = 'communicators and groups'
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, other, error)
  call MPI_Comm_group(other, group, error)
  call MPI_Group_size(group, count, error)
  call check(count == (size + 1 - mod(rank, 2)) / 2 .and. group /= MPI_GROUP_NULL)
  call MPI_Group_free(group, error)
  call MPI_Comm_free(other, error)
  call check(other == MPI_COMM_NULL .and. group == MPI_GROUP_NULL)
  periods = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ size /), periods, .false., other, error)
  periods = .false.
  call MPI_Cart_get(other, 1, places, periods, got, error)
  call check(periods(1) .and. places(1) == size .and. got(1) == rank)
  call MPI_Comm_free(other, error)

  step = 'attributes'
  extra = 5
  call MPI_Comm_create_keyval(copy, remove, keyval, extra, error)
  value = 37
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, error)
  call MPI_Comm_dup(MPI_COMM_SELF, other, error)
  call MPI_Comm_get_attr(other, keyval, value, flag, error)
  call check(flag .and. value == 42 .and. copies == 1)
  call MPI_Comm_free(other, error)
  call check(deletes == 42)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, error)
  call check(flag .and. value >= 32767)
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, place, flag, error)
  call check(flag .and. place >= size)

  step = 'strings'
  call MPI_Info_create(other, error)
  call MPI_Info_set(other, 'ferry', 'boat', error)
  call MPI_Info_get(other, 'ferry', 12, held, flag, error)
  call check(flag .and. held == 'boat')
  call MPI_Info_free(other, error)
  call check(other == MPI_INFO_NULL)

  step = 'errors'
  call MPI_Send(rank, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, error)
  call check(error == MPI_ERR_RANK)
  call MPI_Error_string(error, text, length, count)
  call check(length > 0 .and. length <= MPI_MAX_ERROR_STRING)
  call MPI_Errhandler_create(on_error, handler, error)
  call MPI_Errhandler_set(MPI_COMM_SELF, handler, error)
  call MPI_Send(rank, 1, MPI_INTEGER, 3, 0, MPI_COMM_SELF, error)
  call check(handled == MPI_ERR_RANK)
  call MPI_Comm_rank(4711, count, error)
  call check(error == MPI_ERR_COMM)

  step = 'the end'
  call MPI_Finalize(error)
  write (*, '(a,i0,a)') 'rank ', rank, ': ok'
contains
  integer function index_of_ferry(words)
    character(len=*), intent(in) :: words
    index_of_ferry = scan(words, 'F')
  end function
end program

! One language of a program that mixes several (mixed.c): each unit has the same procedures, over
! mpif.h, `mpi` or mpi_f08 (TYPED), by MPI's names or by those of PMPI. C calls them with handles that
! are integers, which is what typed handles are, too.
module UNIT
  use, intrinsic :: iso_c_binding
  USE_LINE
  implicit none
  INCLUDE_LINE
  private
  character(*), parameter :: prefix = UNIT_NAME
  integer(c_int), bind(c, name=prefix//'_copies') :: copies = 0
  integer(c_int), bind(c, name=prefix//'_deletes') :: deletes = 0
  integer(c_int), bind(c, name=prefix//'_reductions') :: reductions = 0
  integer(c_int), bind(c, name=prefix//'_handled') :: handled = 0
  integer :: ierr
contains

  ! ---- What MPI calls ----------------------------------------------------------------------------

  ! A copy is greater by the extra state.
  subroutine copy(object, keyval, extra_state, value_in, value_out, flag, ierror)
    HANDLE(MPI_Comm) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    copies = copies + 1
    value_out = value_in + extra_state
    flag = object == MPI_COMM_WORLD .or. keyval /= MPI_KEYVAL_INVALID
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(object, keyval, value, extra_state, ierror)
    HANDLE(MPI_Comm) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra_state
    ierror = MPI_ERR_OTHER
    if (object == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID .or. value == 0) return
    if (extra_state == 1000) ierror = MPI_SUCCESS
    deletes = deletes + 1
  end subroutine

  subroutine add(in, inout, n, datatype)
#ifdef TYPED
    type(c_ptr), value :: in, inout
    integer, pointer :: a(:), b(:)
#else
    integer :: in(*), inout(*)
#endif
    integer :: n
    HANDLE(MPI_Datatype) :: datatype
    reductions = reductions + 1
    if (datatype /= MPI_INTEGER) return
#ifdef TYPED
    call c_f_pointer(in, a, [n])
    call c_f_pointer(inout, b, [n])
    b = a + b
#else
    inout(:n) = in(:n) + inout(:n)
#endif
  end subroutine

  subroutine on_error(object, code)
    HANDLE(MPI_Comm) :: object
    integer :: code, class
    call MPI_Error_class(code, class, ierr)
    if (object /= MPI_COMM_NULL .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine

  ! ---- What C calls ------------------------------------------------------------------------------

  subroutine make_keyval(is_own, keyval) bind(c, name=prefix//'_make_keyval')
    integer(c_int), value :: is_own
    integer :: keyval
    if (is_own /= 0) then
      call MPI_Comm_create_keyval(copy, delete, keyval, 1000_MPI_ADDRESS_KIND, ierr)
    else
      call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, &
                                  0_MPI_ADDRESS_KIND, ierr)
    end if
  end subroutine

  subroutine set_attr(comm, keyval, value) bind(c, name=prefix//'_set_attr')
    HANDLE(MPI_Comm) :: comm
    integer :: keyval
    integer(MPI_ADDRESS_KIND) :: value
    call MPI_Comm_set_attr(comm, keyval, value, ierr)
  end subroutine

  subroutine get_attr(comm, keyval, value, flag) bind(c, name=prefix//'_get_attr')
    HANDLE(MPI_Comm) :: comm
    integer :: keyval, flag
    integer(MPI_ADDRESS_KIND) :: value
    logical :: is_set
    call MPI_Comm_get_attr(comm, keyval, value, is_set, ierr)
    flag = merge(1, 0, is_set)
  end subroutine

  subroutine duplicate(comm, made) bind(c, name=prefix//'_duplicate')
    HANDLE(MPI_Comm) :: comm, made
    call MPI_Comm_dup(comm, made, ierr)
  end subroutine

  subroutine free(comm) bind(c, name=prefix//'_free')
    HANDLE(MPI_Comm) :: comm
    call MPI_Comm_free(comm, ierr)
  end subroutine

  subroutine make_op(op) bind(c, name=prefix//'_make_op')
    HANDLE(MPI_Op) :: op
    call MPI_Op_create(add, .true., op, ierr)
  end subroutine

  ! The sum of the numbers of all ranks, and of 7 of this one's alone.
  function reduce(comm, op, number) bind(c, name=prefix//'_reduce') result(total)
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Op) :: op
    integer :: number, total, seven(1)
    call MPI_Allreduce(number, total, 1, MPI_INTEGER, op, comm, ierr)
    seven = 7
    call MPI_Reduce_local(seven, total, 1, MPI_INTEGER, op, ierr)
  end function

  subroutine make_handler(handler) bind(c, name=prefix//'_make_handler')
    HANDLE(MPI_Errhandler) :: handler
    call MPI_Comm_create_errhandler(on_error, handler, ierr)
  end subroutine

  ! Returns the class of the error.
  function fail(comm, handler) bind(c, name=prefix//'_fail') result(class)
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Errhandler) :: handler
    integer :: class, code
    call MPI_Comm_set_errhandler(comm, handler, ierr)
    call MPI_Send(class, 1, MPI_INTEGER, 99, 0, comm, code)
    call MPI_Error_class(code, class, ierr)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
  end function

  ! Two integers, at absolute addresses.
  subroutine make_type(first, second, type) bind(c, name=prefix//'_make_type')
    integer :: first, second
    HANDLE(MPI_Datatype) :: type
    integer(MPI_ADDRESS_KIND) :: places(2)
    call MPI_Get_address(first, places(1), ierr)
    call MPI_Get_address(second, places(2), ierr)
    call MPI_Type_create_struct(2, [1, 1], places, [MPI_INTEGER, MPI_INTEGER], type, ierr)
    call MPI_Type_commit(type, ierr)
  end subroutine

  subroutine send(comm, type, to) bind(c, name=prefix//'_send')
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Datatype) :: type
    integer :: to
    call MPI_Send(MPI_BOTTOM, 1, type, to, 5, comm, ierr)
  end subroutine

  ! The status goes to C as it is.
  subroutine recv(comm, type, from, status) bind(c, name=prefix//'_recv')
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Datatype) :: type
    integer :: from
#ifdef TYPED
    type(MPI_Status) :: status
#else
    integer :: status(MPI_STATUS_SIZE)
#endif
    call MPI_Recv(MPI_BOTTOM, 1, type, from, 5, comm, status, ierr)
  end subroutine

  subroutine read_status(status, words) bind(c, name=prefix//'_read_status')
#ifdef TYPED
    type(MPI_Status) :: status
#else
    integer :: status(MPI_STATUS_SIZE)
#endif
    integer :: words(3)
#ifdef TYPED
    words(:2) = [status%MPI_SOURCE, status%MPI_TAG]
#else
    words(:2) = [status(MPI_SOURCE), status(MPI_TAG)]
#endif
    call MPI_Get_count(status, MPI_INTEGER, words(3), ierr)
  end subroutine
end module

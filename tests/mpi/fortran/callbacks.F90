! Procedures that MPI calls, over mpif.h, `mpi` or mpi_f08 (TYPED): two ranks.
module callbacks
  use, intrinsic :: iso_c_binding
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer :: copies = 0, deletes = 0, reductions = 0, handled = 0, ierr
contains

  subroutine copy(keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    copies = copies + 1
    value_out = value_in + extra_state
    flag = value_in > 0  ! negative ones stay where they are
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, keyval == MPI_KEYVAL_INVALID)
  end subroutine

  subroutine copy_type(object, keyval, extra_state, value_in, value_out, flag, ierror)
    HANDLE(MPI_Datatype) :: object
    integer :: keyval, ierror, bytes
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    call MPI_Type_size(object, bytes, ierr)
    call copy(keyval, extra_state, value_in, value_out, flag, ierror)
    if (bytes /= 8) ierror = MPI_ERR_OTHER
  end subroutine

  subroutine delete_type(object, keyval, value, extra_state, ierror)
    HANDLE(MPI_Datatype) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra_state
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, object /= MPI_DATATYPE_NULL .and. &
                   keyval /= MPI_KEYVAL_INVALID .and. extra_state == 1000 .and. value /= 0)
    deletes = deletes + 1
  end subroutine

  subroutine copy_win(object, keyval, extra_state, value_in, value_out, flag, ierror)
    HANDLE(MPI_Win) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    call copy(keyval, extra_state, value_in, value_out, flag, ierror)
    if (object == MPI_WIN_NULL) ierror = MPI_ERR_OTHER
  end subroutine

  ! Refuses at first.
  subroutine delete_win(object, keyval, value, extra_state, ierror)
    HANDLE(MPI_Win) :: object
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra_state
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, object /= MPI_WIN_NULL .and. deletes > 0 .and. &
                   keyval /= MPI_KEYVAL_INVALID .and. extra_state == 1000 .and. value == -77)
    deletes = deletes + 1
  end subroutine

  ! It calls what such procedures may call.
  subroutine add(in, inout, n, datatype)
#ifdef TYPED
    type(c_ptr), value :: in, inout
    integer, pointer :: a(:), b(:)
#else
    integer :: in(*), inout(*)
#endif
    integer :: n, bytes
    HANDLE(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: lower, extent
    call MPI_Type_size(datatype, bytes, ierr)
    call MPI_Type_get_extent(datatype, lower, extent, ierr)
    reductions = reductions + 1
    if (bytes /= 8 .or. lower /= 0 .or. extent /= 8) return
#ifdef TYPED
    call c_f_pointer(in, a, [2 * n])
    call c_f_pointer(inout, b, [2 * n])
    b = a + b
#else
    inout(:2 * n) = in(:2 * n) + inout(:2 * n)
#endif
  end subroutine

  subroutine on_file(file, code)
    HANDLE(MPI_File) :: file
    integer :: code, class
    call MPI_Error_class(code, class, ierr)
    if (file /= MPI_FILE_NULL .and. class == MPI_ERR_READ_ONLY) handled = handled + 1
  end subroutine

  subroutine twice_the_size(datatype, extent, extra_state, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer :: ierror, bytes
    integer(MPI_ADDRESS_KIND) :: extent, extra_state
    call MPI_Type_size(datatype, bytes, ierror)
    extent = extra_state * bytes
  end subroutine

#ifndef TYPED
  ! The deprecated form, whose values are INTEGER.
  subroutine old_copy(comm, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: comm, keyval, extra_state, value_in, value_out, ierror
    logical :: flag
    copies = copies + 1
    flag = comm /= MPI_COMM_NULL .and. keyval /= MPI_KEYVAL_INVALID
    value_out = value_in + extra_state
    ierror = MPI_SUCCESS
  end subroutine

  subroutine old_delete(comm, keyval, value, extra_state, ierror)
    integer :: comm, keyval, value, extra_state, ierror
    deletes = deletes + 1
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, comm /= MPI_COMM_NULL .and. value < 0 .and. &
                   extra_state == -50 .and. keyval /= MPI_KEYVAL_INVALID)
  end subroutine
#endif
end module

program main
  use callbacks
  use checks
  implicit none
  integer :: rank
  integer(MPI_ADDRESS_KIND) :: value, state = 1000
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  call types
  call windows
  call predefined
  call operations
  call files
#ifndef TYPED
  call old_keyvals
#endif
  call report(rank)
  call MPI_Finalize(ierr)

contains

  subroutine types
    HANDLE(MPI_Datatype) :: type, duplicate
    integer :: keyval
    copies = 0
    deletes = 0
    call MPI_Type_contiguous(2, MPI_INTEGER, type, ierr)
    call MPI_Type_create_keyval(copy_type, delete_type, keyval, state, ierr)
    call MPI_Type_set_attr(type, keyval, 5_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_dup(type, duplicate, ierr)
    call MPI_Type_get_attr(duplicate, keyval, value, flag, ierr)
    call check(flag .and. value == 1005, 'a copy function of datatypes')
    call MPI_Type_free(duplicate, ierr)
    call MPI_Type_set_attr(type, keyval, -5_MPI_ADDRESS_KIND, ierr)
    call check(deletes == 2, 'a delete function of datatypes')
    call MPI_Type_dup(type, duplicate, ierr)
    call MPI_Type_get_attr(duplicate, keyval, value, flag, ierr)
    call check(.not. flag .and. copies == 2, 'a copy function that does not copy')
    call MPI_Type_free(duplicate, ierr)
    call MPI_Type_free_keyval(keyval, ierr)
    call MPI_Type_free(type, ierr)
    call check(ierr == MPI_SUCCESS .and. deletes == 3, 'an attribute whose keyval was freed')
  end subroutine

  subroutine windows
    HANDLE(MPI_Win) :: win
    integer :: keyval, cells(2)
    deletes = 0
    call MPI_Win_create(cells, 8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
    call MPI_Win_create_keyval(copy_win, delete_win, keyval, state, ierr)
    call MPI_Win_set_attr(win, keyval, -77_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_get_attr(win, keyval, value, flag, ierr)
    call check(flag .and. value == -77, 'an attribute of a window')
    call MPI_Win_delete_attr(win, keyval, ierr)
    call check(ierr /= MPI_SUCCESS .and. deletes == 1, 'a delete function of windows that refuses')
    call MPI_Win_get_attr(win, keyval, value, flag, ierr)
    call check(flag .and. value == -77, 'an attribute that could not be deleted')
    call MPI_Win_free_keyval(keyval, ierr)
    call MPI_Win_free(win, ierr)
    call check(ierr == MPI_SUCCESS .and. deletes == 2, 'a delete function of windows')
  end subroutine

  ! A program may call them.
  subroutine predefined
    HANDLE(MPI_Win) :: win
    win = MPI_WIN_NULL
    value = 0
    flag = .false.
    call MPI_TYPE_DUP_FN(MPI_INTEGER, 1, state, 9_MPI_ADDRESS_KIND, value, flag, ierr)
    call check(flag .and. value == 9 .and. ierr == MPI_SUCCESS, 'a call of MPI_TYPE_DUP_FN')
    call MPI_WIN_DUP_FN(win, 1, state, 8_MPI_ADDRESS_KIND, value, flag, ierr)
    call check(flag .and. value == 8 .and. ierr == MPI_SUCCESS, 'a call of MPI_WIN_DUP_FN')
    call MPI_TYPE_NULL_COPY_FN(MPI_INTEGER, 1, state, 7_MPI_ADDRESS_KIND, value, flag, ierr)
    call check(.not. flag .and. value == 8, 'a call of MPI_TYPE_NULL_COPY_FN')
    flag = .true.
    call MPI_WIN_NULL_COPY_FN(win, 1, state, 7_MPI_ADDRESS_KIND, value, flag, ierr)
    call check(.not. flag .and. value == 8, 'a call of MPI_WIN_NULL_COPY_FN')
    ierr = -1
    call MPI_TYPE_NULL_DELETE_FN(MPI_INTEGER, 1, value, state, ierr)
    call check(ierr == MPI_SUCCESS, 'a call of MPI_TYPE_NULL_DELETE_FN')
    ierr = -1
    call MPI_WIN_NULL_DELETE_FN(win, 1, value, state, ierr)
    call check(ierr == MPI_SUCCESS, 'a call of MPI_WIN_NULL_DELETE_FN')
    ierr = -1
    call MPI_COMM_NULL_DELETE_FN(MPI_COMM_SELF, 1, value, state, ierr)
    call check(ierr == MPI_SUCCESS, 'a call of MPI_COMM_NULL_DELETE_FN')
  end subroutine

  ! It is freed while the reduction needs it: before the other rank has begun.
  subroutine operations
    HANDLE(MPI_Op) :: op
    HANDLE(MPI_Datatype) :: pair
    HANDLE(MPI_Request) :: request
    integer :: i
    integer, asynchronous :: mine(2000), total(2000)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
    call MPI_Type_commit(pair, ierr)
    call MPI_Op_create(add, .true., op, ierr)
    mine = [(i * (rank + 1), i = 1, 2000)]
    if (rank == 1) call MPI_Recv(i, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Iallreduce(mine, total, 1000, pair, op, MPI_COMM_WORLD, request, ierr)
    call MPI_Op_free(op, ierr)
    call MPI_Type_free(pair, ierr)
    call check(op == MPI_OP_NULL, 'MPI_Op_free')
    if (rank == 0) call MPI_Send(i, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(all(total == [(3 * i, i = 1, 2000)]), 'an operation that was freed')
    call check(reductions > 0, 'an operation that calls MPI')
  end subroutine

  subroutine files
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Errhandler) :: handler
    integer :: cells(2)
    integer(MPI_ADDRESS_KIND) :: extent
    character(512) :: name
    call get_environment_variable('TEST_TMPDIR', name)
    if (name == ' ') name = '/tmp'
    name = trim(name)//'/ferry_fortran_callbacks'
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY + MPI_MODE_CREATE, MPI_INFO_NULL, file, ierr)
    call MPI_File_close(file, ierr)
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &
                       file, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_open')
    call MPI_File_create_errhandler(on_file, handler, ierr)
    call MPI_File_set_errhandler(file, handler, ierr)
    call MPI_Errhandler_free(handler, ierr)
    cells = 0
    call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, cells, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    call check(ierr /= MPI_SUCCESS .and. handled == 1, 'an error handler of a file')
    call MPI_File_call_errhandler(file, MPI_ERR_READ_ONLY, ierr)
    call check(ierr == MPI_SUCCESS .and. handled == 2, 'a call of an error handler of a file')
#ifdef TYPED
    call MPI_Register_datarep_c('of large counts', MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, &
                                twice_the_size, 2_MPI_ADDRESS_KIND, ierr)
#else
    call MPI_Register_datarep('of large counts', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, &
                              twice_the_size, 2_MPI_ADDRESS_KIND, ierr)
#endif
    call check(ierr == MPI_SUCCESS, 'MPI_Register_datarep_c')
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'of large counts', &
                           MPI_INFO_NULL, ierr)
    call MPI_File_get_type_extent(file, MPI_INTEGER, extent, ierr)
    call check(extent == 8, 'a representation of the program')
    call MPI_File_close(file, ierr)
  end subroutine

#ifndef TYPED
  subroutine old_keyvals
    integer :: keyval, comm, duplicate, old
    copies = 0
    deletes = 0
    call MPI_Keyval_create(old_copy, old_delete, keyval, -50, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Attr_put(comm, keyval, -7, ierr)
    call MPI_Comm_dup(comm, duplicate, ierr)
    call MPI_Attr_get(duplicate, keyval, old, flag, ierr)
    call check(flag .and. old == -57 .and. copies == 1, 'a copy function of MPI_Keyval_create')
    call MPI_Comm_free(duplicate, ierr)
    call MPI_Attr_delete(comm, keyval, ierr)
    call check(ierr == MPI_SUCCESS .and. deletes == 2, 'a delete function of MPI_Keyval_create')
    call MPI_Keyval_free(keyval, ierr)
    call MPI_Comm_free(comm, ierr)
    flag = .false.
    call MPI_DUP_FN(MPI_COMM_SELF, 1, 0, 6, old, flag, ierr)
    call check(flag .and. old == 6, 'a call of MPI_DUP_FN')
    call MPI_NULL_COPY_FN(MPI_COMM_SELF, 1, 0, 5, old, flag, ierr)
    call check(.not. flag .and. old == 6, 'a call of MPI_NULL_COPY_FN')
    ierr = -1
    call MPI_NULL_DELETE_FN(MPI_COMM_SELF, 1, old, 0, ierr)
    call check(ierr == MPI_SUCCESS, 'a call of MPI_NULL_DELETE_FN')
  end subroutine
#endif
end program

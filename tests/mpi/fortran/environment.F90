! Chapters 9, 10, 11 and 20 in Fortran: two ranks, each procedure once at least.
program environment
  USE_LINE
  use checks
  implicit none
  INCLUDE_LINE
  integer :: ierr, rank, comm, n, m, length, provided
  logical :: flag
  character(MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(MPI_MAX_PROCESSOR_NAME) :: name
  integer :: handled
  common /handled_errors/ handled

  ! Some calls may precede MPI_Init.
  call MPI_Initialized(flag, ierr)
  call check(.not. flag, 'MPI_Initialized before')
  call MPI_Get_version(n, m, ierr)
  call check(n == MPI_VERSION .and. m == MPI_SUBVERSION, 'MPI_Get_version')
  call binary_interface
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided, ierr)
  call check(ierr == 0 .and. provided >= MPI_THREAD_SINGLE, 'MPI_Init_thread')
  call MPI_Initialized(flag, ierr)
  call check(flag, 'MPI_Initialized')
  call MPI_Query_thread(n, ierr)
  call check(n == provided, 'MPI_Query_thread')
  call MPI_Is_thread_main(flag, ierr)
  call check(flag, 'MPI_Is_thread_main')
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Get_library_version(version, length, ierr)
  call check(index(version, 'Ferry') > 0 .and. version(length + 1:) == ' ', 'MPI_Get_library_version')
  call MPI_Get_processor_name(name, length, ierr)
  call check(length > 0 .and. len_trim(name) == length, 'MPI_Get_processor_name')
  call check(MPI_Wtime() > 0d0 .and. MPI_Wtick() > 0d0 .and. MPI_Wtick() < 1d0, 'MPI_Wtime, MPI_Wtick')
  call check(PMPI_Wtime() >= MPI_Wtime() - 1d0, 'PMPI_Wtime')
  call MPI_Pcontrol(1)
  call MPI_Get_hw_resource_info(n, ierr)
  call check(n /= MPI_INFO_NULL, 'MPI_Get_hw_resource_info')
  call MPI_Info_free(n, ierr)
  call said_again
  call infos
  call memory
  call handlers
  call codes
  call sessions
  call processes
  call report(rank)
  call MPI_Finalize(ierr)
  call MPI_Finalized(flag, ierr)
  if (.not. flag) stop 3

contains

  subroutine binary_interface
    integer :: info
    logical :: yes, no
    logical(8) :: long_yes, long_no
    character(16) :: value
    call MPI_Abi_get_version(n, m, ierr)
    call check(n == MPI_ABI_VERSION .and. m == MPI_ABI_SUBVERSION, 'MPI_Abi_get_version')
    call MPI_Abi_get_info(info, ierr)
    call MPI_Info_get(info, 'mpi_aint_size', 16, value, flag, ierr)
    call check(flag .and. value == '8', 'MPI_Abi_get_info')
    call MPI_Info_free(info, ierr)
    ! The library has said it when it was loaded.
    call MPI_Abi_get_fortran_info(info, ierr)
    call check(info /= MPI_INFO_NULL, 'MPI_Abi_get_fortran_info')
    call MPI_Info_get(info, 'mpi_logical_size', 16, value, flag, ierr)
    call check(flag .and. value == '4', 'mpi_logical_size')
    call MPI_Info_free(info, ierr)
    yes = .false.
    no = .true.
    long_yes = .false.
    long_no = .true.
    flag = .false.
    call MPI_Abi_get_fortran_booleans(4, yes, no, flag, ierr)
    call check(flag .and. yes .and. .not. no, 'MPI_Abi_get_fortran_booleans')
    flag = .false.
    call MPI_Abi_get_fortran_booleans(8, long_yes, long_no, flag, ierr)
    call check(flag .and. logical(long_yes .and. .not. long_no), &
               'MPI_Abi_get_fortran_booleans of LOGICAL(8)')
  end subroutine

  subroutine said_again
    integer :: info
    logical :: yes, no
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
    call MPI_Abi_get_fortran_info(info, ierr)
    call MPI_Abi_set_fortran_info(info, ierr)
    call check(ierr == MPI_ERR_ABI, 'MPI_Abi_set_fortran_info, again')
    call MPI_Info_free(info, ierr)
    yes = .true.
    no = .false.
    call MPI_Abi_set_fortran_booleans(4, yes, no, ierr)
    call check(ierr == MPI_ERR_ABI, 'MPI_Abi_set_fortran_booleans, again')
  end subroutine

  subroutine infos
    integer :: info, copy
    character(8) :: value
    character(3) :: short
    character(MPI_MAX_INFO_KEY) :: key
    call MPI_Info_create(info, ierr)
    ! Without blanks on either side.
    call MPI_Info_set(info, '  a key ', ' some value  ', ierr)
    call MPI_Info_get_valuelen(info, 'a key', length, flag, ierr)
    call check(flag .and. length == 10, 'MPI_Info_get_valuelen')
    value = 'xxxxxxxx'
    call MPI_Info_get(info, 'a key ', 4, value, flag, ierr)
    call check(flag .and. value == 'some', 'MPI_Info_get')
    call MPI_Info_get(info, 'a key', 10, short, flag, ierr)
    call check(flag .and. short == 'som', 'MPI_Info_get into less')
    call MPI_Info_get(info, 'another', 8, value, flag, ierr)
    call check(.not. flag .and. value == 'some', 'MPI_Info_get of nothing')
    length = 0
    call MPI_Info_get_string(info, 'a key', length, value, flag, ierr)
    call check(flag .and. length == 10 .and. value == 'some', 'MPI_Info_get_string of length 0')
    length = 8
    call MPI_Info_get_string(info, 'a key', length, value, flag, ierr)
    call check(flag .and. length == 10 .and. value == 'some val', 'MPI_Info_get_string')
    call MPI_Info_get_nkeys(info, n, ierr)
    call check(n == 1, 'MPI_Info_get_nkeys')
    call MPI_Info_get_nthkey(info, 0, key, ierr)
    call check(key == 'a key', 'MPI_Info_get_nthkey')
    call MPI_Info_dup(info, copy, ierr)
    call MPI_Info_delete(info, ' a key', ierr)
    call MPI_Info_get_nkeys(info, n, ierr)
    call MPI_Info_get_nkeys(copy, m, ierr)
    call check(n == 0 .and. m == 1, 'MPI_Info_delete, MPI_Info_dup')
    call MPI_Info_free(info, ierr)
    call MPI_Info_free(copy, ierr)
    call check(info == MPI_INFO_NULL, 'MPI_Info_free')
    call MPI_Info_create_env(info, ierr)
    call check(info /= MPI_INFO_NULL, 'MPI_Info_create_env')
    call MPI_Info_free(info, ierr)
  end subroutine

  subroutine memory
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: place
    real(8), pointer :: x(:)
    integer(MPI_ADDRESS_KIND) :: address
    call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, place, ierr)
    call c_f_pointer(place, x, [10])
    x = 1
    call check(ierr == 0 .and. sum(x) == 10, 'MPI_Alloc_mem')
    call MPI_Free_mem(x, ierr)
    call check(ierr == 0, 'MPI_Free_mem')
    address = 0
    call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierr)
    call check(address /= 0, 'MPI_Alloc_mem of an integer')
    call c_f_pointer(transfer(address, place), x, [10])
    call MPI_Free_mem(x, ierr)
    call MPI_F_sync_reg(n)
  end subroutine

  subroutine handlers
    integer :: handler, got, made, session, win
    integer :: cell(1)
    external :: on_comm, on_win, on_session
    handled = 0
    call MPI_Comm_dup(comm, made, ierr)
    call MPI_Comm_create_errhandler(on_comm, handler, ierr)
    call MPI_Comm_set_errhandler(made, handler, ierr)
    call MPI_Comm_get_errhandler(made, got, ierr)
    call check(got == handler, 'MPI_Comm_get_errhandler')
    call MPI_Errhandler_free(got, ierr)
    call MPI_Errhandler_free(handler, ierr)
    call check(handler == MPI_ERRHANDLER_NULL, 'MPI_Errhandler_free')
    call MPI_Comm_call_errhandler(made, MPI_ERR_OTHER, ierr)
    call check(handled == made, 'MPI_Comm_call_errhandler')
    handled = 0
    call MPI_Send(cell, 1, MPI_INTEGER, 99, 0, made, ierr)
    call check(handled == made .and. ierr /= 0, 'an error handler of a communicator')
    call MPI_Comm_free(made, ierr)
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierr)
    call MPI_Session_create_errhandler(on_session, handler, ierr)
    call MPI_Session_set_errhandler(session, handler, ierr)
    call MPI_Session_get_errhandler(session, got, ierr)
    call check(got == handler, 'MPI_Session_get_errhandler')
    call MPI_Session_call_errhandler(session, MPI_ERR_OTHER, ierr)
    call check(handled == session, 'MPI_Session_call_errhandler')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Errhandler_free(got, ierr)
    call MPI_Session_finalize(session, ierr)
    call MPI_Win_create(cell, 4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, ierr)
    call MPI_Win_create_errhandler(on_win, handler, ierr)
    call MPI_Win_set_errhandler(win, handler, ierr)
    call MPI_Win_get_errhandler(win, got, ierr)
    call check(got == handler, 'MPI_Win_get_errhandler')
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER, ierr)
    call check(handled == win, 'MPI_Win_call_errhandler')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Errhandler_free(got, ierr)
    call MPI_Win_free(win, ierr)
    call MPI_File_create_errhandler(on_win, handler, ierr)
    call check(ierr == 0, 'MPI_File_create_errhandler')
    call MPI_File_set_errhandler(MPI_FILE_NULL, handler, ierr)
    call MPI_File_get_errhandler(MPI_FILE_NULL, got, ierr)
    call check(got == handler, 'MPI_File_get_errhandler of the program''s own')
    call MPI_Errhandler_free(got, ierr)
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierr)
    call MPI_File_get_errhandler(MPI_FILE_NULL, got, ierr)
    call check(got == MPI_ERRORS_RETURN, 'MPI_File_get_errhandler')
    call MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_OTHER, ierr)
    call MPI_Errhandler_free(handler, ierr)
  end subroutine

  subroutine codes
    integer :: class, code, found
    character(MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
    call MPI_Add_error_class(class, ierr)
    call MPI_Add_error_code(class, code, ierr)
    call MPI_Add_error_string(code, 'a code of its own   ', ierr)
    call MPI_Error_class(code, found, ierr)
    call check(found == class, 'MPI_Add_error_class, MPI_Add_error_code')
    call MPI_Error_string(code, text, length, ierr)
    call check(text == 'a code of its own' .and. length == 17, 'MPI_Add_error_string')
    call MPI_Remove_error_string(code, ierr)
    call check(ierr == 0, 'MPI_Remove_error_string')
    call MPI_Remove_error_code(code, ierr)
    call check(ierr == 0, 'MPI_Remove_error_code')
    call MPI_Remove_error_class(class, ierr)
    call check(ierr == 0, 'MPI_Remove_error_class')
    ! Strings are left alone when the call fails.
    text = 'as before'
    call MPI_Error_string(-77, text, length, ierr)
    call check(ierr /= 0 .and. text == 'as before', 'MPI_Error_string that fails')
  end subroutine

  subroutine sessions
    integer :: session, info, group, made, i
    character(MPI_MAX_PSET_NAME_LEN) :: pset
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierr)
    call check(ierr == 0 .and. session /= MPI_SESSION_NULL, 'MPI_Session_init')
    call MPI_Session_get_info(session, info, ierr)
    call check(info /= MPI_INFO_NULL, 'MPI_Session_get_info')
    call MPI_Info_free(info, ierr)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n, ierr)
    call check(n >= 2, 'MPI_Session_get_num_psets')
    do i = 0, n - 1
      length = 0
      call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, length, pset, ierr)
      m = length
      call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, length, pset, ierr)
      call check(length == m .and. len_trim(pset) == m, 'MPI_Session_get_nth_pset')
    end do
    call MPI_Session_get_pset_info(session, 'mpi://WORLD  ', info, ierr)
    call check(ierr == 0, 'MPI_Session_get_pset_info')
    call MPI_Info_free(info, ierr)
    call MPI_Group_from_session_pset(session, 'mpi://WORLD', group, ierr)
    call MPI_Comm_create_from_group(group, 'environment', MPI_INFO_NULL, MPI_ERRORS_RETURN, made, ierr)
    call MPI_Comm_size(made, n, ierr)
    call check(n == 2, 'MPI_Group_from_session_pset')
    call MPI_Comm_free(made, ierr)
    call MPI_Group_free(group, ierr)
    call MPI_Session_finalize(session, ierr)
    call check(session == MPI_SESSION_NULL, 'MPI_Session_finalize')
  end subroutine

  ! Ferry starts no processes yet: these come back with an error.
  subroutine processes
    integer :: made, errors(2)
    character(MPI_MAX_PORT_NAME) :: port
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
    port = 'no port'
    call MPI_Comm_spawn('program', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, made, &
                        MPI_ERRCODES_IGNORE, ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_spawn')
    call MPI_Comm_spawn('program', ['a word ', 'another', '       '], 1, MPI_INFO_NULL, 0, &
                        MPI_COMM_SELF, made, errors, ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_spawn with arguments')
    call MPI_Comm_spawn_multiple(2, ['a', 'b'], MPI_ARGVS_NULL, [1, 1], &
                                 [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, made, &
                                 MPI_ERRCODES_IGNORE, ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_spawn_multiple')
    call MPI_Comm_spawn_multiple(2, ['a', 'b'], reshape(['x', 'y', ' ', ' '], [2, 2]), [1, 1], &
                                 [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, made, errors, &
                                 ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_spawn_multiple with arguments')
    call MPI_Open_port(MPI_INFO_NULL, port, ierr)
    call check(ierr == 0 .or. port == 'no port', 'MPI_Open_port')
    call MPI_Publish_name('name', MPI_INFO_NULL, 'no port', ierr)
    call check(ierr /= 0, 'MPI_Publish_name')
    call MPI_Lookup_name('name', MPI_INFO_NULL, port, ierr)
    call check(ierr /= 0, 'MPI_Lookup_name')
    call MPI_Unpublish_name('name', MPI_INFO_NULL, 'no port', ierr)
    call check(ierr /= 0, 'MPI_Unpublish_name')
    call MPI_Comm_accept('no port', MPI_INFO_NULL, 0, MPI_COMM_SELF, made, ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_accept')
    call MPI_Comm_connect('no port', MPI_INFO_NULL, 0, MPI_COMM_SELF, made, ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_connect')
    call MPI_Comm_join(99, made, ierr)
    call check(ierr /= 0 .and. made == MPI_COMM_NULL, 'MPI_Comm_join')
    call MPI_Close_port('no port', ierr)
    call check(ierr /= 0, 'MPI_Close_port')
    if (ierr < 0) call MPI_Abort(comm, 1, ierr)
  end subroutine
end program

subroutine on_comm(object, code)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer :: object, code, handled
  common /handled_errors/ handled
  if (code /= MPI_SUCCESS) handled = object
end subroutine

subroutine on_win(object, code)
  implicit none
  integer :: object, code, handled
  common /handled_errors/ handled
  if (code /= 0) handled = object
end subroutine

subroutine on_session(object, code)
  implicit none
  integer :: object, code, handled
  common /handled_errors/ handled
  if (code /= 0) handled = object
end subroutine

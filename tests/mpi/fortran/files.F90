! Chapter 14 in Fortran: two ranks, each procedure once at least. TYPED: over mpi_f08.
program files
  USE_LINE
  use checks
  implicit none
  INCLUDE_LINE
  external :: twice_the_size
  integer :: ierr, rank, n
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Request) :: request
#ifdef TYPED
  type(MPI_Status) :: status
#else
  integer :: status(MPI_STATUS_SIZE)
#endif
  integer, asynchronous :: w(2), r(2)
  integer(MPI_OFFSET_KIND) :: mine, place
  character(512) :: name

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  mine = 8 * rank
  call get_environment_variable('TEST_TMPDIR', name)
  if (name == ' ') name = '/tmp'
  name = trim(name)//'/ferry_fortran_files'
  call opened
  call explicit_places
  call own_pointers
  call shared_pointers
  call representations
  call closed
  call report(rank)
  call MPI_Finalize(ierr)

contains

  ! What the next write writes, the number `turn`: other values each time, and on each rank.
  subroutine fill(turn)
    integer, intent(in) :: turn
    w = [1000 * turn + rank, 2000 * turn + rank]
    r = -1
  end subroutine

  subroutine moved(what)
    character(*), intent(in) :: what
    call check(ierr == MPI_SUCCESS, what)
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    call check(n == 2, 'the count of '//what)
  end subroutine

  subroutine awaited(what)
    character(*), intent(in) :: what
    call check(ierr == MPI_SUCCESS, 'the start of '//what)
    call MPI_Wait(request, status, ierr)
    call moved(what)
  end subroutine

  subroutine back(what)
    character(*), intent(in) :: what
    call moved(what)
    call check(all(r == w), 'the values of '//what)
  end subroutine

  subroutine back_later(what)
    character(*), intent(in) :: what
    call awaited(what)
    call check(all(r == w), 'the values of '//what)
  end subroutine

  subroutine opened
    HANDLE(MPI_Group) :: group
    HANDLE(MPI_Info) :: info
    integer :: length
    logical :: flag
    character(8) :: value
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR + MPI_MODE_CREATE, MPI_INFO_NULL, &
                       file, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_open')
    call MPI_File_get_amode(file, n, ierr)
    call check(n == MPI_MODE_RDWR + MPI_MODE_CREATE, 'MPI_File_get_amode')
    call MPI_File_get_group(file, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call check(n == 2, 'MPI_File_get_group')
    call MPI_Group_free(group, ierr)
    call MPI_File_set_size(file, 64_MPI_OFFSET_KIND, ierr)
    call MPI_File_get_size(file, place, ierr)
    call check(place == 64, 'MPI_File_set_size, MPI_File_get_size')
    call MPI_File_preallocate(file, 128_MPI_OFFSET_KIND, ierr)
    call MPI_File_get_size(file, place, ierr)
    call check(place == 128, 'MPI_File_preallocate')
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, 'cb_nodes', '1', ierr)
    call MPI_File_set_info(file, info, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_set_info')
    call MPI_Info_free(info, ierr)
    call MPI_File_get_info(file, info, ierr)
    length = 8
    call MPI_Info_get_string(info, 'cb_nodes', length, value, flag, ierr)
    call check(flag .and. value == '1', 'MPI_File_get_info')
    call MPI_Info_free(info, ierr)
    call MPI_File_set_atomicity(file, .true., ierr)
    flag = .false.
    call MPI_File_get_atomicity(file, flag, ierr)
    call check(flag, 'MPI_File_get_atomicity')
    call MPI_File_set_atomicity(file, .false., ierr)
    call MPI_File_get_atomicity(file, flag, ierr)
    call check(.not. flag, 'MPI_File_set_atomicity')
  end subroutine

  subroutine explicit_places
    call fill(1)
    call MPI_File_write_at(file, mine, w, 2, MPI_INTEGER, status, ierr)
    call moved('MPI_File_write_at')
    call MPI_File_sync(file, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_sync')
    call MPI_File_read_at(file, mine, r, 2, MPI_INTEGER, status, ierr)
    call back('MPI_File_read_at')
    call fill(2)
    call MPI_File_write_at_all(file, mine, w, 2, MPI_INTEGER, status, ierr)
    call moved('MPI_File_write_at_all')
    call MPI_File_read_at_all(file, mine, r, 2, MPI_INTEGER, status, ierr)
    call back('MPI_File_read_at_all')
    call fill(3)
    call MPI_File_iwrite_at(file, mine, w, 2, MPI_INTEGER, request, ierr)
    call awaited('MPI_File_iwrite_at')
    call MPI_File_iread_at(file, mine, r, 2, MPI_INTEGER, request, ierr)
    call back_later('MPI_File_iread_at')
    call fill(4)
    call MPI_File_iwrite_at_all(file, mine, w, 2, MPI_INTEGER, request, ierr)
    call awaited('MPI_File_iwrite_at_all')
    call MPI_File_iread_at_all(file, mine, r, 2, MPI_INTEGER, request, ierr)
    call back_later('MPI_File_iread_at_all')
    call fill(5)
    call MPI_File_write_at_all_begin(file, mine, w, 2, MPI_INTEGER, ierr)
    call MPI_File_write_at_all_end(file, w, status, ierr)
    call moved('MPI_File_write_at_all_end')
    call MPI_File_read_at_all_begin(file, mine, r, 2, MPI_INTEGER, ierr)
    call MPI_File_read_at_all_end(file, r, status, ierr)
    call back('MPI_File_read_at_all_end')
  end subroutine

  subroutine rewind_own
    call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_seek')
  end subroutine

  ! Each rank's view begins at its own place.
  subroutine own_pointers
    HANDLE(MPI_Datatype) :: etype, filetype
    character(MPI_MAX_DATAREP_STRING) :: datarep
    call MPI_File_set_view(file, mine, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_set_view')
    call MPI_File_get_view(file, place, etype, filetype, datarep, ierr)
    call check(place == mine .and. etype == MPI_INTEGER .and. filetype == MPI_INTEGER .and. &
               datarep == 'native', 'MPI_File_get_view')
    call MPI_File_get_byte_offset(file, 1_MPI_OFFSET_KIND, place, ierr)
    call check(place == mine + 4, 'MPI_File_get_byte_offset')
    call fill(6)
    call MPI_File_write(file, w, 2, MPI_INTEGER, status, ierr)
    call moved('MPI_File_write')
    call MPI_File_get_position(file, place, ierr)
    call check(place == 2, 'MPI_File_get_position')
    call rewind_own
    call MPI_File_read(file, r, 2, MPI_INTEGER, status, ierr)
    call back('MPI_File_read')
    call rewind_own
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call fill(7)
    call MPI_File_write_all(file, w, 2, MPI_INTEGER, status, ierr)
    call moved('MPI_File_write_all')
    call rewind_own
    call MPI_File_read_all(file, r, 2, MPI_INTEGER, status, ierr)
    call back('MPI_File_read_all')
    call rewind_own
    call fill(8)
    call MPI_File_iwrite(file, w, 2, MPI_INTEGER, request, ierr)
    call awaited('MPI_File_iwrite')
    call rewind_own
    call MPI_File_iread(file, r, 2, MPI_INTEGER, request, ierr)
    call back_later('MPI_File_iread')
    call rewind_own
    call fill(9)
    call MPI_File_iwrite_all(file, w, 2, MPI_INTEGER, request, ierr)
    call awaited('MPI_File_iwrite_all')
    call rewind_own
    call MPI_File_iread_all(file, r, 2, MPI_INTEGER, request, ierr)
    call back_later('MPI_File_iread_all')
    call rewind_own
    call fill(10)
    call MPI_File_write_all_begin(file, w, 2, MPI_INTEGER, ierr)
    call MPI_File_write_all_end(file, w, status, ierr)
    call moved('MPI_File_write_all_end')
    call rewind_own
    call MPI_File_read_all_begin(file, r, 2, MPI_INTEGER, ierr)
    call MPI_File_read_all_end(file, r, status, ierr)
    call back('MPI_File_read_all_end')
  end subroutine

  subroutine rewind_shared
    call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_seek_shared')
  end subroutine

  subroutine either(what)
    character(*), intent(in) :: what
    call moved(what)
    call check(r(1) - w(1) == r(2) - w(2) .and. abs(r(1) - w(1)) <= 1, 'the values of '//what)
  end subroutine

  subroutine shared_pointers
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', &
                           MPI_INFO_NULL, ierr)
    call fill(11)
    call MPI_File_write_ordered(file, w, 2, MPI_INTEGER, status, ierr)
    call moved('MPI_File_write_ordered')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_get_position_shared(file, place, ierr)
    call check(place == 4, 'MPI_File_get_position_shared')
    call rewind_shared
    call MPI_File_read_ordered(file, r, 2, MPI_INTEGER, status, ierr)
    call back('MPI_File_read_ordered')
    call rewind_shared
    call fill(12)
    call MPI_File_write_ordered_begin(file, w, 2, MPI_INTEGER, ierr)
    call MPI_File_write_ordered_end(file, w, status, ierr)
    call moved('MPI_File_write_ordered_end')
    call rewind_shared
    call MPI_File_read_ordered_begin(file, r, 2, MPI_INTEGER, ierr)
    call MPI_File_read_ordered_end(file, r, status, ierr)
    call back('MPI_File_read_ordered_end')
    ! Who comes first is open: a rank reads what one of both has written.
    call rewind_shared
    call fill(13)
    call MPI_File_write_shared(file, w, 2, MPI_INTEGER, status, ierr)
    call moved('MPI_File_write_shared')
    call rewind_shared
    call MPI_File_read_shared(file, r, 2, MPI_INTEGER, status, ierr)
    call either('MPI_File_read_shared')
    call rewind_shared
    call fill(14)
    call MPI_File_iwrite_shared(file, w, 2, MPI_INTEGER, request, ierr)
    call awaited('MPI_File_iwrite_shared')
    call rewind_shared
    call MPI_File_iread_shared(file, r, 2, MPI_INTEGER, request, ierr)
    call check(ierr == MPI_SUCCESS, 'the start of MPI_File_iread_shared')
    call MPI_Wait(request, status, ierr)
    call either('MPI_File_iread_shared')
  end subroutine

  subroutine representations
    integer(MPI_ADDRESS_KIND) :: extent, nothing
    integer :: class
    nothing = 0
    call MPI_File_get_type_extent(file, MPI_INTEGER, extent, ierr)
    call check(extent == 4, 'MPI_File_get_type_extent')
    call MPI_Register_datarep('of fortran', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, &
                              twice_the_size, nothing, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Register_datarep')
    call MPI_Register_datarep('of fortran', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, &
                              twice_the_size, nothing, ierr)
    call MPI_Error_class(ierr, class, ierr)
    call check(class == MPI_ERR_DUP_DATAREP, 'MPI_Register_datarep of a name that is there')
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'of fortran', &
                           MPI_INFO_NULL, ierr)
    call check(ierr == MPI_SUCCESS, 'a view of the program''s representation')
    call MPI_File_get_type_extent(file, MPI_INTEGER, extent, ierr)
    call check(extent == 8, 'MPI_File_get_type_extent of the program''s representation')
  end subroutine

  subroutine closed
    integer :: class
    call MPI_File_close(file, ierr)
    call check(ierr == MPI_SUCCESS .and. file == MPI_FILE_NULL, 'MPI_File_close')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank /= 0) return
    call MPI_File_delete(name, MPI_INFO_NULL, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_File_delete')
    call MPI_File_delete(name, MPI_INFO_NULL, ierr)
    call MPI_Error_class(ierr, class, ierr)
    call check(class == MPI_ERR_NO_SUCH_FILE, 'MPI_File_delete of no file')
  end subroutine
end program

subroutine twice_the_size(datatype, extent, extra_state, ierror)
  USE_LINE
  implicit none
  INCLUDE_LINE
  HANDLE(MPI_Datatype) :: datatype
  integer :: ierror, bytes
  integer(MPI_ADDRESS_KIND) :: extent, extra_state
  call MPI_Type_size(datatype, bytes, ierror)
  extent = 2 * bytes
end subroutine

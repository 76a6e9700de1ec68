! Chapter 12 in Fortran: two ranks, each procedure once at least.
program windows
  USE_LINE
  use, intrinsic :: iso_c_binding
  use checks
  implicit none
  INCLUDE_LINE
  integer :: ierr, rank, other, comm, win, n, request
  integer, target, asynchronous :: memory(8)
  integer, asynchronous :: a(4), b(4), c(4)
  integer(MPI_ADDRESS_KIND), parameter :: bytes = 32, zero = 0
  logical :: flag

  call MPI_Init(ierr)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  other = 1 - rank
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, comm, win, ierr)
  call check(ierr == 0, 'MPI_Win_create')
  call accesses
  call with_requests
  call groups
  call names
  call MPI_Win_free(win, ierr)
  call check(win == MPI_WIN_NULL, 'MPI_Win_free')
  call other_windows
  call report(rank)
  call MPI_Finalize(ierr)

contains

  subroutine accesses
    memory = 0
    a = [rank, 1, 2, 3]
    call MPI_Win_fence(0, win, ierr)
    call MPI_Put(a, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(all(memory(1:4) == [other, 1, 2, 3]), 'MPI_Put')
    call MPI_Win_fence(0, win, ierr)  ! the other rank writes there next
    b = 0
    call MPI_Get(b, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(all(b == a), 'MPI_Get')
    call MPI_Accumulate(a, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, MPI_SUM, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(all(memory(1:4) == 2 * [other, 1, 2, 3]), 'MPI_Accumulate')
    call MPI_Win_fence(0, win, ierr)  ! the other rank writes there next
    call MPI_Get_accumulate(a, 4, MPI_INTEGER, b, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, &
                            MPI_SUM, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(all(b == 2 * a) .and. all(memory(1:4) == 3 * [other, 1, 2, 3]), 'MPI_Get_accumulate')
    call MPI_Win_fence(0, win, ierr)  ! the other rank writes there next
    call MPI_Fetch_and_op(5, b, MPI_INTEGER, other, 1_MPI_ADDRESS_KIND, MPI_SUM, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(b(1) == 3 .and. memory(2) == 8, 'MPI_Fetch_and_op')
    call MPI_Win_fence(0, win, ierr)  ! the other rank writes there next
    call MPI_Compare_and_swap(9, 8, b, MPI_INTEGER, other, 1_MPI_ADDRESS_KIND, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(b(1) == 8 .and. memory(2) == 9, 'MPI_Compare_and_swap')
    call MPI_Win_fence(0, win, ierr)  ! the other rank writes there next
  end subroutine

  subroutine with_requests
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win, ierr)
    memory = 0
    call MPI_Win_unlock(rank, win, ierr)
    call MPI_Barrier(comm, ierr)
    call MPI_Win_lock_all(0, win, ierr)
    call MPI_Rput(a, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, win, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Win_flush(other, win, ierr)
    call MPI_Rget(b, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, win, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(all(b == a), 'MPI_Rput, MPI_Rget')
    call MPI_Raccumulate(a, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, MPI_SUM, win, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Win_flush_all(win, ierr)
    call MPI_Rget_accumulate(a, 4, MPI_INTEGER, c, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, &
                             MPI_SUM, win, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(all(c == 2 * a), 'MPI_Raccumulate, MPI_Rget_accumulate')
    call MPI_Win_flush_local(other, win, ierr)
    call MPI_Win_flush_local_all(win, ierr)
    call check(ierr == 0, 'MPI_Win_flush_local_all')
    call MPI_Win_sync(win, ierr)
    call MPI_Win_unlock_all(win, ierr)
    call MPI_Barrier(comm, ierr)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win, ierr)
    call check(all(memory(1:4) == 3 * [other, 1, 2, 3]), 'MPI_Win_unlock_all')
    call MPI_Win_unlock(rank, win, ierr)
    call MPI_Barrier(comm, ierr)
  end subroutine

  subroutine groups
    integer :: group, peer
    call MPI_Win_get_group(win, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call check(n == 2, 'MPI_Win_get_group')
    call MPI_Group_incl(group, 1, [other], peer, ierr)
    memory = 0
    call MPI_Win_post(peer, 0, win, ierr)
    call MPI_Win_start(peer, 0, win, ierr)
    call MPI_Put(a, 4, MPI_INTEGER, other, zero, 4, MPI_INTEGER, win, ierr)
    call MPI_Win_complete(win, ierr)
    call MPI_Win_wait(win, ierr)
    call check(all(memory(1:4) == [other, 1, 2, 3]), 'MPI_Win_post, MPI_Win_start, MPI_Win_wait')
    call MPI_Win_post(peer, 0, win, ierr)
    call MPI_Win_start(peer, 0, win, ierr)
    call MPI_Win_complete(win, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Win_test(win, flag, ierr)
    end do
    call check(ierr == 0, 'MPI_Win_test')
    call MPI_Group_free(group, ierr)
    call MPI_Group_free(peer, ierr)
  end subroutine

  subroutine names
    integer :: info, keyval, length
    integer(MPI_ADDRESS_KIND) :: value
    character(MPI_MAX_OBJECT_NAME) :: name
    call MPI_Win_set_name(win, 'a window', ierr)
    call MPI_Win_get_name(win, name, length, ierr)
    call check(name == 'a window' .and. length == 8, 'MPI_Win_get_name')
    call MPI_Win_get_info(win, info, ierr)
    call MPI_Win_set_info(win, info, ierr)
    call check(ierr == 0, 'MPI_Win_get_info, MPI_Win_set_info')
    call MPI_Info_free(info, ierr)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
    call check(flag .and. value == 32, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
    call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
    call check(flag .and. value == transfer(c_loc(memory), value), 'MPI_WIN_BASE')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
    call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, zero, ierr)
    call MPI_Win_set_attr(win, keyval, 12_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_get_attr(win, keyval, value, flag, ierr)
    call check(flag .and. value == 12, 'MPI_Win_set_attr')
    call MPI_Win_delete_attr(win, keyval, ierr)
    call MPI_Win_get_attr(win, keyval, value, flag, ierr)
    call check(.not. flag, 'MPI_Win_delete_attr')
    call MPI_Win_free_keyval(keyval, ierr)
    call check(keyval == MPI_KEYVAL_INVALID, 'MPI_Win_free_keyval')
  end subroutine

  subroutine other_windows
    type(c_ptr) :: place
    integer, pointer :: cells(:)
    integer(MPI_ADDRESS_KIND) :: size, address
    integer :: unit
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, comm, place, win, ierr)
    call c_f_pointer(place, cells, [8])
    cells = rank
    call check(ierr == 0 .and. sum(cells) == 8 * rank, 'MPI_Win_allocate')
    call MPI_Win_free(win, ierr)
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, comm, address, win, ierr)
    call check(ierr == 0 .and. address /= 0, 'MPI_Win_allocate of an integer')
    call MPI_Win_free(win, ierr)
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, comm, place, win, ierr)
    call c_f_pointer(place, cells, [8])
    call MPI_Win_fence(0, win, ierr)
    cells = rank + 1
    call MPI_Win_fence(0, win, ierr)
    call MPI_Win_shared_query(win, other, size, unit, place, ierr)
    call c_f_pointer(place, cells, [8])
    call check(size == 32 .and. unit == 4 .and. all(cells == other + 1), 'MPI_Win_shared_query')
    call MPI_Win_shared_query(win, other, size, unit, address, ierr)
    call check(address == transfer(place, address), 'MPI_Win_shared_query of an integer')
    call MPI_Win_fence(0, win, ierr)
    call MPI_Win_free(win, ierr)
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, comm, address, win, ierr)
    call check(ierr == 0 .and. address /= 0, 'MPI_Win_allocate_shared of an integer')
    call MPI_Win_free(win, ierr)
    call MPI_Win_create_dynamic(MPI_INFO_NULL, comm, win, ierr)
    call MPI_Win_attach(win, memory, bytes, ierr)
    call check(ierr == 0, 'MPI_Win_create_dynamic, MPI_Win_attach')
    call MPI_Win_detach(win, memory, ierr)
    call check(ierr == 0, 'MPI_Win_detach')
    call MPI_Win_free(win, ierr)
  end subroutine
end program

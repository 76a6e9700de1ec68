! Counts what is not as it should be, and says so.
module checks
  implicit none
  integer :: failures = 0
contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (.not. good) then
      failures = failures + 1
      print '(a)', 'wrong: '//what
    end if
  end subroutine

  ! The line that tests wait for.
  subroutine report(rank)
    integer, intent(in) :: rank
    if (failures == 0) print '(a,i0,a)', 'rank ', rank, ': ok'
  end subroutine
end module

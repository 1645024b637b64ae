//! An allocator that counts what a thread holds, and refuses what would take the machine down.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Above this an allocation fails, which ends the process: no text is worth the machine.
const HARD_LIMIT: usize = 2 << 30;

/// Counts bytes by thread. What another thread frees is counted where it is freed: holds for work that stays on its thread.
pub struct Counting;

/// Begins a new peak; what is held now.
pub fn begin() -> usize {
    let held = HELD.get();
    PEAK.set(held);
    held
}

/// The most that was held since.
pub fn peak() -> usize {
    PEAK.get()
}

/// Whether so much more is granted.
fn grant(size: usize) -> bool {
    let held = HELD.get().wrapping_add(size);
    if size > HARD_LIMIT || (held > HARD_LIMIT && held < usize::MAX / 2) {
        return false;
    }
    HELD.set(held);
    // A thread that frees what others gave it holds less than nothing.
    if held < usize::MAX / 2 && held > PEAK.get() {
        PEAK.set(held);
    }
    true
}

fn give_back(size: usize) {
    HELD.set(HELD.get().wrapping_sub(size));
}

// SAFETY: every request is handed to the system's allocator as it came, or refused by a null pointer, which the trait allows. The counters
// are plain cells without destructors: using them allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grant(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises about `layout` are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !grant(size) {
            return std::ptr::null_mut();
        }
        give_back(layout.size());
        // SAFETY: `pointer` came from `System` with this layout; `size` is the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

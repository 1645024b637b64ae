//! Matrix products on one thread, over strided views.
//!
//! A product is a call of the `gemm` crate behind bounds that were checked when its views were made. The element type is a parameter
//! of this file alone: a view of a shorter storage type would be converted here.

/// A matrix within a slice: element (i, j) at i · `row` + j · `column`.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl<'a> View<'a> {
    /// Row-major without gaps.
    pub fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "a matrix fills its slice");
        Self { data, rows, columns, row: columns, column: 1 }
    }
    /// Rows and columns.
    pub fn sides(self) -> (usize, usize) {
        (self.rows, self.columns)
    }
    /// The transposed matrix.
    pub fn t(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }
}

/// A matrix that is written: row-major without gaps.
#[derive(Debug)]
pub struct ViewMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    columns: usize,
}

impl<'a> ViewMut<'a> {
    /// Row-major without gaps.
    pub fn new(data: &'a mut [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "a matrix fills its slice");
        Self { data, rows, columns }
    }
}

/// out (m, n) = a (m, k) · b (k, n), or += with `accumulate`; in the calling thread.
///
/// # Panics
/// If the sides do not fit.
pub fn product(out: ViewMut<'_>, accumulate: bool, a: View<'_>, b: View<'_>) {
    let (m, n, k) = (out.rows, out.columns, a.columns);
    assert_eq!((a.rows, b.rows, b.columns), (m, k, n), "sides of a product fit");
    if m == 0 || n == 0 {
        return;
    }
    let keep = if accumulate { 1.0 } else { 0.0 };
    // SAFETY: each view's slice holds exactly rows · columns elements, and its strides are (columns, 1) or, transposed, (1, rows),
    // so that every (i, j) within the sides given is within the slice; `out` is borrowed uniquely, hence overlaps neither input;
    // the sides agree by the assertion above, and slices are too short for an offset to exceed `isize`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.data.as_mut_ptr(),
            1,
            n as isize,
            accumulate,
            a.data.as_ptr(),
            a.column as isize,
            a.row as isize,
            b.data.as_ptr(),
            b.column as isize,
            b.row as isize,
            keep,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

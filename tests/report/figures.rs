//! Figures: what their captions count, and what they are as files.

use std::collections::BTreeMap;

use super::fixture::{paper, rich};
use xrun::report::{Story, figure_files, findings};

/// A figure has no cells to count in: its caption says what its means rest on.
#[test]
fn captions_count_seeds() {
    let caption = |story: &Story, name: &str| {
        let found = findings(story).figures.into_iter().find(|figure| figure.name == name).expect("a figure");
        found.caption
    };
    let wanted = "n = 5 seeds, but for [post, grow_frozen] (n = 4 of 5, 1 diverged) and joint_long (n = 4 of 5, 1 missing); what is not finished \
                  counts as far as it came.";
    for name in ["loss", "interaction", "delta", "block_removal", "boundary_rms", "transition"] {
        assert!(caption(&rich(), name).ends_with(wanted), "{}", caption(&rich(), name));
    }
    assert!(!caption(&rich(), "plan").contains("n = "));
    assert!(caption(&paper(), "interaction").ends_with(" n = 1 seed."));
}

/// As files of their own, drawings have no word of the page's; each panel is one, and where there are several, all of them side by side.
#[test]
fn figures_are_files() {
    let found = findings(&rich());
    let files: BTreeMap<String, Vec<u8>> = found.figures.iter().flat_map(figure_files).collect();
    let panels: usize = found.figures.iter().map(|figure| figure.panels.len()).sum();
    let single: usize = files.keys().filter(|name| name.ends_with(".svg") && !name.contains("-wide")).count();
    assert_eq!(single, panels);
    for name in ["loss-1.svg", "loss-3.svg", "loss-wide.svg", "delta-1.svg"] {
        assert!(files.contains_key(name), "{name}");
    }
    assert!(!files.contains_key("delta-wide.svg"), "one panel stands beside nothing");
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".svg")) {
        let file = String::from_utf8_lossy(bytes);
        assert!(file.starts_with("<svg xmlns=") && !file.contains("var(") && !file.contains("data-"), "{name}");
    }
    assert!(String::from_utf8_lossy(&files["loss-wide.svg"]).contains("width=\"763\""));
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, bytes) in &files {
        std::fs::write(folder.join(name), bytes).expect("a sample to look at");
    }
}

/// Of the size of print, whole, alike each time; every letter of every name is there or a box.
#[cfg(feature = "figures")]
#[test]
fn figures_are_printed() {
    let mut story = rich();
    story.study.axes[0].values[1].label = "post 中 (ü) \u{202e}\n".to_owned();
    for arm in story.study.arms.iter_mut().filter(|arm| arm.values.get("placement").is_some_and(|value| value == "post")) {
        arm.values.insert("placement".to_owned(), "post 中 (ü) \u{202e}\n".to_owned());
    }
    let found = findings(&story);
    let made = || found.figures.iter().flat_map(figure_files).collect::<BTreeMap<String, Vec<u8>>>();
    let files = made();
    assert!(files == made());
    let svgs = files.keys().filter(|name| name.ends_with(".svg")).count();
    for (ending, start) in [("pdf", &b"%PDF-1"[..]), ("png", &b"\x89PNG"[..])] {
        let of: Vec<_> = files.iter().filter(|(name, _)| name.ends_with(ending)).collect();
        assert_eq!(of.len(), svgs);
        assert!(of.iter().all(|(_, bytes)| bytes.starts_with(start)));
    }
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with("png")) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a header");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let frame = reader.next_frame(&mut pixels).expect("pixels");
        let wide = if name.contains("-wide") { 763 * 4 } else { 370 * 4 };
        assert_eq!((frame.width, frame.color_type), (wide, png::ColorType::Rgb), "{name}");
        // A column of 84 mm at 443 pixels to the inch.
        assert_eq!(reader.info().pixel_dims.map(|dims| dims.xppu), Some(17_444), "{name}");
        let drawn = pixels.chunks_exact(3).filter(|pixel| pixel.iter().any(|part| *part < 200)).count();
        let share = drawn as f64 * 3.0 / pixels.len() as f64;
        assert!((0.005..0.5).contains(&share), "{name}: {share}");
    }
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with("pdf")) {
        let text = String::from_utf8_lossy(bytes);
        assert!(text.contains("/FontFile2") && text.contains("/ToUnicode") && text.trim_end().ends_with("%%EOF"), "{name}");
        assert!(!text.contains("/URI") && !text.contains("/CreationDate"), "{name}");
    }
}

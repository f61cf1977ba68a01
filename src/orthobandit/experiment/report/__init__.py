"""What an experiment says to people and programs: reports, pages, frames and exports."""

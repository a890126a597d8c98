"""The pages: templates filled with the models the API gives."""
